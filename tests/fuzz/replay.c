/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzzer over every file of the folders given, as an ordinary test.
 */
#include <dirent.h>
#include <sys/stat.h>

#include "fuzzing.h"

#define INPUT_MAX (1u << 20)

/* Returns whether the file could be read. */
static int replay_file(const char *path)
{
    static uint8_t buf[INPUT_MAX];
    FILE *file = fopen(path, "rb");

    if (!file) {
        perror(path);
        return 0;
    }
    const size_t size = fread(buf, 1, sizeof(buf), file);
    const int is_read = !ferror(file);
    (void)fclose(file);

    uint8_t *input = exact_copy(buf, size);
    (void)fprintf(stderr, "%s\n", path); /* the last name before a finding is the culprit */
    MUST(LLVMFuzzerTestOneInput(input, size) == 0);
    free(input);
    return is_read;
}

/* Returns how many files were run, or -1. */
static int replay_folder(const char *folder)
{
    struct dirent **entries;
    const int entry_count = scandir(folder, &entries, NULL, alphasort);
    int count = 0;

    if (entry_count < 0) {
        perror(folder);
        return -1;
    }
    for (int i = 0; i < entry_count; i++) {
        char path[4096];
        struct stat st;
        (void)snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        free(entries[i]);
        if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || count < 0)
            continue;
        count = replay_file(path) ? count + 1 : -1;
    }
    free(entries);
    return count;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const int count = replay_folder(argv[i]);
        if (count <= 0) {
            (void)fprintf(stderr, "%s: no inputs\n", argv[i]);
            return 1;
        }
        printf("%s: %d inputs\n", argv[i], count);
    }
    return argc > 1 ? 0 : 1;
}
