#!/bin/sh
# Installs the library to a scratch prefix and builds the C example against it, as a newcomer would: found through
# pkg-config and linked with the shared library, or found through CMake's find_package and linked with the static one.
# Usage: test_installed_example.sh pkg-config|find_package CMAKE BUILD_FOLDER EXAMPLES_FOLDER
set -eu
way=$1 cmake=$2 build=$3 examples=$4

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
quietly() { "$@" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }; }

quietly "$cmake" --install "$build" --prefix "$scratch/prefix"
case $way in
pkg-config)
    folder=$(find "$scratch/prefix" -name anytensor.pc -exec dirname {} \;)
    [ -n "$folder" ] || { echo "no anytensor.pc was installed"; exit 1; }
    export PKG_CONFIG_PATH="$folder" LD_LIBRARY_PATH="$folder/.."
    flags=$(pkg-config --cflags --libs anytensor)
    # $flags is a list of words on purpose.
    "${CC:-cc}" -std=c11 -Wall -Wextra -Wpedantic -Werror "$examples/neighbor_attention.c" $flags -lm \
        -o "$scratch/neighbor_attention"
    "$scratch/neighbor_attention"
    ;;
find_package)
    cat >"$scratch/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.20)
project(example LANGUAGES C)
find_package(anytensor REQUIRED)
add_executable(neighbor_attention $examples/neighbor_attention.c)
target_link_libraries(neighbor_attention PRIVATE anytensor::static m)
END
    quietly "$cmake" -S "$scratch" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/prefix"
    quietly "$cmake" --build "$scratch/build"
    "$scratch/build/neighbor_attention"
    ;;
esac
