/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to name addresses: open a module, first and further addresses.
 *
 *   bench_symbols ELF-FILE...
 *
 * Prints a Markdown table; judges nothing. Addresses are spread over the text.
 */
#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbols/symbols.h"

#define ADDRESSES 2000

/* Where the first segment with code lies. Returns whether there is one. */
static int find_code(const char *path, uint64_t *ret_start, uint64_t *ret_size)
{
    int is_found = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);

    (void)elf_version(EV_CURRENT);
    Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ, NULL);
    size_t count = 0;
    if (elf)
        (void)elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count && !is_found; i++) {
        GElf_Phdr header;
        if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_LOAD ||
            !(header.p_flags & PF_X))
            continue;
        *ret_start = header.p_vaddr;
        *ret_size = header.p_memsz;
        is_found = 1;
    }
    (void)elf_end(elf);
    if (fd >= 0)
        (void)close(fd);
    return is_found;
}

static void run(const char *path)
{
    struct ttm_symbols *symbols = ttm_symbols_new(NULL);
    const struct ttm_symbol *symbol;
    uint64_t start, size;
    uint32_t module;
    unsigned resolved = 0, lines = 0;
    struct stat st;

    if (!symbols || stat(path, &st) < 0 || !find_code(path, &start, &size) ||
        ttm_symbols_module(symbols, path, NULL, &module) < 0) {
        (void)fprintf(stderr, "bench_symbols: %s: no ELF file with code\n", path);
        exit(1);
    }
    const uint64_t begin = ttm_clock_monotonic_ns();
    (void)ttm_symbols_resolve(symbols, module, start + size / 2, &symbol);
    const uint64_t opened = ttm_clock_monotonic_ns();
    for (uint64_t i = 0; i < ADDRESSES; i++) {
        (void)ttm_symbols_resolve(symbols, module, start + size / ADDRESSES * i, &symbol);
        resolved += symbol->frames[0].is_resolved;
        lines += symbol->frames[0].line > 0;
    }
    const uint64_t named = ttm_clock_monotonic_ns();
    for (uint64_t i = 0; i < ADDRESSES; i++)
        (void)ttm_symbols_resolve(symbols, module, start + size / ADDRESSES * i, &symbol);
    const uint64_t again = ttm_clock_monotonic_ns();
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    const char *slash = strrchr(path, '/');
    printf("| %s | %lld | %.0f | %.1f | %llu | %u | %u | %ld |\n", slash ? slash + 1 : path,
           (long long)st.st_size >> 20, (double)(opened - begin) / 1e6,
           (double)(named - opened) / ADDRESSES / 1e3,
           (unsigned long long)(again - named) / ADDRESSES, resolved, lines,
           usage.ru_maxrss / 1024);
    ttm_symbols_free(symbols);
}

int main(int argc, char **argv)
{
    printf("| module | MiB | first address, ms | next ones, us each | again, ns each | named of %u "
           "| with line | peak MiB |\n|---|---|---|---|---|---|---|---|\n",
           ADDRESSES);
    for (int i = 1; i < argc; i++)
        run(argv[i]);
    return 0;
}
