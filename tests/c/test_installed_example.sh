#!/bin/sh
# Installs the library to a scratch prefix and builds the C example against it: headers, library, pkg-config file.
# Usage: test_installed_example.sh CMAKE BUILD_FOLDER EXAMPLES_FOLDER
set -eu
cmake=$1 build=$2 examples=$3

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$cmake" --install "$build" --prefix "$scratch/prefix" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
pkgconfig=$(find "$scratch/prefix" -name anytensor.pc -exec dirname {} \;)
[ -n "$pkgconfig" ] || { echo "no anytensor.pc was installed"; exit 1; }

export PKG_CONFIG_PATH="$pkgconfig" LD_LIBRARY_PATH="$pkgconfig/.."
flags=$(pkg-config --cflags --libs anytensor)
# $flags is a list of words on purpose.
"${CC:-cc}" -std=c11 -Wall -Wextra -Wpedantic -Werror "$examples/neighbor_attention.c" $flags -lm \
    -o "$scratch/neighbor_attention"
"$scratch/neighbor_attention"
