/* Runs a fuzz target over files of a corpus, without a fuzzer: any compiler, sanitizer or valgrind will do.
 *
 *     replay_<target> <folder or file>...
 *
 * Exit status 1 if there was no file; a file that does not hold ends the program, its name printed. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int files;

static void run_file(const char *name)
{
    FILE *file = fopen(name, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        fprintf(stderr, "%s cannot be read\n", name);
        exit(1);
    }
    size_t size = (size_t)ftell(file);
    uint8_t *bytes = malloc(size + 1), *exact = malloc(size ? size : 1);
    rewind(file);
    if (bytes == NULL || exact == NULL || fread(bytes, 1, size, file) != size) exit(1);
    fclose(file);
    memcpy(exact, bytes, size); /* so that a byte too many is seen */
    free(bytes);
    fprintf(stderr, "%s\n", name);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    files++;
}

static void run_folder(const char *name)
{
    struct dirent **entries;
    int count = scandir(name, &entries, NULL, alphasort);
    if (count < 0) run_file(name); /* it is no folder */
    for (int i = 0; i < count; i++) {
        char path[4096];
        int length = snprintf(path, sizeof path, "%s/%s", name, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && length < (int)sizeof path) run_file(path);
        free(entries[i]);
    }
    if (count >= 0) free(entries);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) run_folder(argv[i]);
    printf("%d files\n", files);
    return files == 0;
}
