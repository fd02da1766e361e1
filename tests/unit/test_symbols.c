/* SPDX-License-Identifier: Apache-2.0 */
/* On small programs that are compiled here. Needs cc and objcopy; skipped without. */
#include "testing.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <libelf.h>
#include <limits.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/symbols.h"

static char folder[] = "/tmp/ttm-test-symbols-XXXXXX";

/*
 * The program prints, in hex: where main is, where a function with a C++ name is,
 * where a static function is, and a return address in a function that was inlined.
 * All less the load bias. The names of its lines are checked below.
 */
static const char source[] =
    "#define _GNU_SOURCE\n"
    "#include <link.h>\n"
    "#include <stdint.h>\n"
    "#include <stdio.h>\n"
    "int ttnn_matmul(int x) __asm__(\"_ZN4ttnn10operations6matmul6matmulIiEEvRKT_\");\n"
    "static void *volatile here;\n"
    "__attribute__((noinline)) static void note(void) { here = __builtin_return_address(0); }\n"
    "static inline __attribute__((always_inline)) int inlined(int x)\n"
    "{\n"
    "    note(); /* line 10 */\n"
    "    return x * 3 + (here != 0);\n"
    "}\n"
    "__attribute__((noinline)) static int hidden(int x) { return x + (here != 0); }\n"
    "__attribute__((noinline)) int ttnn_matmul(int x)\n"
    "{\n"
    "    x = hidden(x);\n"
    "    return inlined(x) + 1; /* line 17 */\n"
    "}\n"
    "static int first(struct dl_phdr_info *info, size_t size, void *arg)\n"
    "{\n"
    "    (void)size;\n"
    "    *(uintptr_t *)arg = info->dlpi_addr;\n"
    "    return 1;\n"
    "}\n"
    "int main(int argc, char **argv)\n"
    "{\n"
    "    uintptr_t bias;\n"
    "    (void)argv;\n"
    "    dl_iterate_phdr(first, &bias);\n"
    "    argc = ttnn_matmul(argc);\n"
    "    printf(\"%lx %lx %lx %lx\\n\", (long)((uintptr_t)main - bias),\n"
    "           (long)((uintptr_t)ttnn_matmul - bias), (long)((uintptr_t)hidden - bias),\n"
    "           (long)((uintptr_t)here - bias));\n"
    "    return argc == 77;\n"
    "}\n";

struct fixture {
    char path[128];
    char build_id[64];
    uint64_t main_at, matmul_at, hidden_at, inlined_at;
};

static void run_command(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void run_command(const char *format, ...)
{
    char command[1024];
    va_list args;

    va_start(args, format);
    const int n = vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    assert_true(n > 0 && (size_t)n < sizeof(command));
    if (system(command) != 0) /* NOLINT(cert-env33-c): paths of our own */
        fail_msg("failed: %s", command);
}

static void read_build_id(struct fixture *fixture)
{
    const int fd = open(fixture->path, O_RDONLY);
    const uint8_t *id;

    (void)elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    const ssize_t length = dwelf_elf_gnu_build_id(elf, (const void **)&id);
    assert_true(length > 4 && length < 32);
    for (ssize_t i = 0; i < length; i++)
        (void)snprintf(fixture->build_id + i * 2, 3, "%02x", id[i]);
    (void)elf_end(elf);
    (void)close(fd);
}

/* Compiles the program with these options, runs it, and notes where things are. */
static struct fixture compile(const char *name, const char *options)
{
    struct fixture fixture = {0};
    char command[256];
    unsigned long at[4];

    (void)snprintf(fixture.path, sizeof(fixture.path), "%s/%s", folder, name);
    run_command("cc -O2 -Wl,--build-id %s -o '%s' '%s/source.c'", options, fixture.path, folder);
    (void)snprintf(command, sizeof(command), "'%s'", fixture.path);
    FILE *output = popen(command, "r"); /* NOLINT(cert-env33-c): a program of our own */
    assert_non_null(output);
    assert_int_equal(fscanf(output, "%lx %lx %lx %lx", &at[0], &at[1], &at[2], &at[3]), 4);
    assert_int_equal(pclose(output), 0);
    fixture.main_at = at[0];
    fixture.matmul_at = at[1];
    fixture.hidden_at = at[2];
    fixture.inlined_at = at[3] - 1; /* the call */
    read_build_id(&fixture);
    return fixture;
}

static int set_up(void **state)
{
    char path[128];
    (void)state;

    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(path, sizeof(path), "%s/source.c", folder);
    FILE *file = fopen(path, "w");
    if (!file || fputs(source, file) < 0 || fclose(file) != 0)
        return -1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    run_command("rm -rf '%s'", folder);
    return 0;
}

/* libdw 0.188 forgets its list of scopes when a tree of DIEs turns out to be broken. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libdw.so\n"; /* without frame pointers there is no function to name */
}

static struct ttm_symbols *symbols;

static const struct ttm_symbol *resolve(const struct fixture *fixture, uint64_t offset)
{
    const struct ttm_symbol *symbol = NULL;
    uint32_t module;

    assert_int_equal(ttm_symbols_module(symbols, fixture->path, fixture->build_id, &module), 0);
    assert_int_equal(ttm_symbols_resolve(symbols, module, offset, &symbol), 0);
    return symbol;
}

static void assert_name(const struct ttm_symbol *symbol, const char *expected)
{
    assert_int_equal(symbol->count, 1);
    assert_string_equal(symbol->frames[0].name, expected);
    assert_true(symbol->frames[0].is_resolved);
    assert_false(symbol->frames[0].is_inlined);
}

static void assert_unresolved(const struct ttm_symbol *symbol, const struct fixture *fixture,
                              uint64_t offset)
{
    char expected[128];

    (void)snprintf(expected, sizeof(expected), "%s+0x%llx", strrchr(fixture->path, '/') + 1,
                   (unsigned long long)offset);
    assert_int_equal(symbol->count, 1);
    assert_string_equal(symbol->frames[0].name, expected);
    assert_string_equal(symbol->frames[0].full, expected);
    assert_false(symbol->frames[0].is_resolved);
    assert_null(symbol->frames[0].file);
    assert_int_equal(symbol->frames[0].line, 0);
}

static int begin(void **state)
{
    if (set_up(state) < 0)
        return -1;
    char debug[128];
    (void)snprintf(debug, sizeof(debug), "%s/debug", folder);
    symbols = ttm_symbols_new(debug);
    return symbols ? 0 : -1;
}

static int end(void **state)
{
    ttm_symbols_free(symbols);
    return tear_down(state);
}

static void without_debug_information_functions_have_names(void **state)
{
    static const char *const kinds[] = {"-fPIE -pie", "-fno-pie -no-pie"};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const struct fixture fixture = compile(i ? "fixed" : "pie", kinds[i]);
        assert_name(resolve(&fixture, fixture.main_at), "main");
        assert_name(resolve(&fixture, fixture.main_at + 5), "main");
        assert_name(resolve(&fixture, fixture.hidden_at), "hidden");
        const struct ttm_symbol *matmul = resolve(&fixture, fixture.matmul_at + 2);
        assert_name(matmul, "ttnn::operations::matmul::matmul");
        assert_string_equal(matmul->frames[0].full,
                            "void ttnn::operations::matmul::matmul<int>(int const&)");
        assert_null(matmul->frames[0].file);
        assert_name(resolve(&fixture, fixture.inlined_at), "ttnn::operations::matmul::matmul");
        assert_unresolved(resolve(&fixture, 3), &fixture, 3);
        assert_unresolved(resolve(&fixture, 1ull << 50), &fixture, 1ull << 50);
    }
}

/* Build systems give the compiler relative paths; whoever reads the source is elsewhere. */
static void a_relative_file_is_found_from_the_folder_of_the_compiler(void **state)
{
    static const char *const kinds[] = {"-g", "-g -gdwarf-4"};
    char path[256];
    (void)state;

    (void)snprintf(path, sizeof(path), "%s/../%s/source.c", folder, strrchr(folder, '/') + 1);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "relative%zu", i);
        struct fixture fixture = compile(name, "");
        run_command("cd '%s' && cc -O2 -Wl,--build-id %s -o '%s' '../%s/source.c'", folder,
                    kinds[i], fixture.path, strrchr(folder, '/') + 1);
        read_build_id(&fixture);
        const struct ttm_symbol *inlined = resolve(&fixture, fixture.inlined_at);
        assert_int_equal(inlined->count, 2);
        assert_string_equal(inlined->frames[0].file, path);
        assert_string_equal(inlined->frames[1].file, path);
    }
}

static void with_debug_information_there_are_lines_and_inlined_functions(void **state)
{
    static const char *const kinds[] = {"-g -fPIE -pie", "-g -fno-pie -no-pie",
                                        "-g -gdwarf-4 -fPIE -pie"};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "debug%zu", i);
        const struct fixture fixture = compile(name, kinds[i]);
        const struct ttm_symbol *inlined = resolve(&fixture, fixture.inlined_at);
        assert_int_equal(inlined->count, 2);
        assert_string_equal(inlined->frames[0].name, "inlined");
        assert_true(inlined->frames[0].is_inlined);
        assert_non_null(strstr(inlined->frames[0].file, "source.c"));
        assert_int_equal(inlined->frames[0].line, 10);
        assert_string_equal(inlined->frames[1].name, "ttnn::operations::matmul::matmul");
        assert_false(inlined->frames[1].is_inlined);
        assert_non_null(strstr(inlined->frames[1].file, "source.c"));
        assert_int_equal(inlined->frames[1].line, 17);
        const struct ttm_symbol *hidden = resolve(&fixture, fixture.hidden_at);
        assert_int_equal(hidden->count, 1);
        assert_string_equal(hidden->frames[0].name, "hidden");
        assert_int_equal(hidden->frames[0].line, 13);
    }
}

static void a_stripped_program_has_what_it_exports(void **state)
{
    (void)state;
    const struct fixture fixture = compile("stripped", "-g -fPIE -pie -rdynamic");
    run_command("strip '%s'", fixture.path);
    assert_name(resolve(&fixture, fixture.matmul_at), "ttnn::operations::matmul::matmul");
    assert_unresolved(resolve(&fixture, fixture.hidden_at), &fixture, fixture.hidden_at);
}

/* As Debian's -dbgsym packages have it. */
static void make_debug_file(const struct fixture *fixture)
{
    run_command("mkdir -p '%s/debug/.build-id/%.2s'", folder, fixture->build_id);
    run_command("objcopy --only-keep-debug '%s' '%s/debug/.build-id/%.2s/%s.debug'", fixture->path,
                folder, fixture->build_id, fixture->build_id + 2);
    run_command("strip '%s'", fixture->path);
}

static void a_separate_debug_file_is_found_by_build_id(void **state)
{
    (void)state;
    const struct fixture fixture = compile("split", "-g -fPIE -pie");
    make_debug_file(&fixture);
    const struct ttm_symbol *inlined = resolve(&fixture, fixture.inlined_at);
    assert_int_equal(inlined->count, 2);
    assert_int_equal(inlined->frames[0].line, 10);
    assert_string_equal(inlined->frames[1].name, "ttnn::operations::matmul::matmul");
    assert_string_equal(resolve(&fixture, fixture.hidden_at)->frames[0].name, "hidden");
}

static void a_debug_file_does_where_the_module_is_gone(void **state)
{
    (void)state;
    const struct fixture fixture = compile("went", "-g -fPIE -pie");
    make_debug_file(&fixture);
    assert_int_equal(unlink(fixture.path), 0);
    assert_string_equal(resolve(&fixture, fixture.hidden_at)->frames[0].name, "hidden");
    assert_int_equal(resolve(&fixture, fixture.hidden_at)->frames[0].line, 13);
}

static void a_module_that_is_gone_or_another_one_is_not_guessed_about(void **state)
{
    struct fixture fixture = compile("changed", "-fPIE -pie");
    uint32_t module;
    (void)state;

    fixture.build_id[0] = fixture.build_id[0] == '0' ? '1' : '0';
    assert_unresolved(resolve(&fixture, fixture.main_at), &fixture, fixture.main_at);
    assert_int_equal(ttm_symbols_module(symbols, fixture.path, fixture.build_id, &module), 0);
    assert_int_equal(ttm_symbols_module_state(symbols, module), TTM_SYMBOLS_CHANGED);

    assert_int_equal(unlink(fixture.path), 0);
    fixture.build_id[0] = 'a';
    assert_unresolved(resolve(&fixture, fixture.main_at), &fixture, fixture.main_at);
    assert_int_equal(ttm_symbols_module(symbols, fixture.path, fixture.build_id, &module), 0);
    assert_int_equal(ttm_symbols_module_state(symbols, module), TTM_SYMBOLS_GONE);
}

/* ---- files that a program names ---- */

static int watch_openings(const char *path)
{
    const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

    assert_true(watch >= 0);
    assert_true(inotify_add_watch(watch, path, IN_OPEN) >= 0);
    return watch;
}

/* Takes over 'watch'. Returns whether the file was opened, other than with O_PATH. */
static bool was_opened(int watch)
{
    char event[sizeof(struct inotify_event) + NAME_MAX + 1];
    const bool is_opened = read(watch, event, sizeof(event)) > 0;

    (void)close(watch);
    return is_opened;
}

/* Takes the place of a file that is there. */
static void make_fifo(char path[256], const char *name)
{
    (void)snprintf(path, 256, "%s/%s", folder, name);
    (void)unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
}

/* To open some files is to do something, such as to start a watchdog. */
static void a_module_that_is_no_regular_file_is_not_opened(void **state)
{
    struct fixture fixture = {0};
    char path[256];
    (void)state;

    make_fifo(path, "module-fifo");
    (void)snprintf(fixture.path, sizeof(fixture.path), "%.127s", path);
    const int watch = watch_openings(path);
    assert_unresolved(resolve(&fixture, 100), &fixture, 100);
    assert_false(was_opened(watch));
}

/* libdw opens files that the module names, and would wait for a FIFO. */
static void a_debug_link_to_a_fifo_is_not_waited_for(void **state)
{
    char path[256];
    (void)state;

    const struct fixture fixture = compile("linked", "-fPIE -pie");
    run_command("cd '%s' && echo x >linked.debug && objcopy --add-gnu-debuglink=linked.debug "
                "linked && mkdir -p .debug",
                folder);
    make_fifo(path, "linked.debug");
    const int watch = watch_openings(path);
    make_fifo(path, ".debug/linked.debug");
    const int hidden_watch = watch_openings(path);
    assert_name(resolve(&fixture, fixture.hidden_at), "hidden");
    assert_false(was_opened(watch));
    assert_false(was_opened(hidden_watch));
}

static void a_debug_link_is_followed(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "link1" : "link0";
        const struct fixture fixture = compile(name, "-g -fPIE -pie");
        run_command("cd '%s' && mkdir -p .debug && objcopy --only-keep-debug %s %s.debug && "
                    "strip %s && objcopy --add-gnu-debuglink=%s.debug %s",
                    folder, name, name, name, name, name);
        if (i)
            run_command("mv '%s/%s.debug' '%s/.debug'", folder, name, folder);
        assert_int_equal(resolve(&fixture, fixture.hidden_at)->frames[0].line, 13);
    }
}

/* One of another build than the module has other lines. */
static void a_debug_link_to_another_build_is_not_believed(void **state)
{
    (void)state;
    const struct fixture fixture = compile("mine", "-g -O1 -fPIE -pie");
    (void)compile("other", "-g -O2 -DOTHER -fPIE -pie -Wl,--build-id=uuid");
    run_command("cd '%s' && objcopy --only-keep-debug other mine.debug && strip mine && "
                "objcopy --add-gnu-debuglink=mine.debug mine",
                folder);
    assert_unresolved(resolve(&fixture, fixture.hidden_at), &fixture, fixture.hidden_at);
}

static void split_debug_information_in_a_fifo_is_not_waited_for(void **state)
{
    static const char *const kinds[] = {"-g -gsplit-dwarf", "-g -gsplit-dwarf -gdwarf-4"};
    char path[256];
    (void)state;

    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        char name[32], split[64];
        (void)snprintf(name, sizeof(name), "apart%zu", i);
        (void)snprintf(split, sizeof(split), "%s-source.dwo", name);
        const struct fixture fixture = compile(name, kinds[i]);
        make_fifo(path, split);
        const int watch = watch_openings(path);
        const struct ttm_symbol *hidden = resolve(&fixture, fixture.hidden_at);
        assert_string_equal(hidden->frames[0].name, "hidden");
        assert_int_equal(hidden->frames[0].line, 13); /* the module itself has lines */
        assert_string_equal(resolve(&fixture, fixture.inlined_at)->frames[0].name,
                            "ttnn::operations::matmul::matmul");
        assert_false(was_opened(watch));
    }
}

static void a_common_debug_file_that_is_a_fifo_is_not_waited_for(void **state)
{
    char path[256];
    (void)state;

    const struct fixture fixture = compile("common", "-g -fPIE -pie");
    run_command("cd '%s' && printf 'common.alt\\0aaaaaaaaaaaaaaaaaaaa' >altlink && "
                "objcopy --add-section .gnu_debugaltlink=altlink common",
                folder);
    make_fifo(path, "common.alt");
    const int watch = watch_openings(path);
    assert_string_equal(resolve(&fixture, fixture.hidden_at)->frames[0].name, "hidden");
    assert_false(was_opened(watch));
}

static void without_a_build_id_the_file_is_taken_as_it_is(void **state)
{
    struct fixture fixture = compile("nameless", "-fPIE -pie");
    uint32_t module;
    (void)state;

    fixture.build_id[0] = '\0';
    assert_name(resolve(&fixture, fixture.main_at), "main");
    assert_int_equal(ttm_symbols_module(symbols, fixture.path, NULL, &module), 0);
    assert_int_equal(ttm_symbols_module_state(symbols, module), TTM_SYMBOLS_FOUND);
}

static void what_is_no_elf_file_has_no_names(void **state)
{
    static const char *const odd[] = {"/dev/null", "/dev/zero", "/proc/self/mem",   "/tmp",
                                      "",          "[vdso]",    "/nonexistent/x.so"};
    const struct ttm_symbol *symbol;
    uint32_t module;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        assert_int_equal(ttm_symbols_module(symbols, odd[i], "", &module), 0);
        assert_int_equal(ttm_symbols_resolve(symbols, module, 0x10, &symbol), 0);
        assert_false(symbol->frames[0].is_resolved);
        assert_non_null(strstr(symbol->frames[0].name, "+0x10"));
        assert_int_equal(ttm_symbols_module_state(symbols, module), TTM_SYMBOLS_GONE);
    }
    assert_int_equal(ttm_symbols_resolve(symbols, 1000, 0, &symbol), -EINVAL);
}

/* Truncated and scrambled, here and there: whatever comes of it, nothing breaks. */
static void broken_elf_files_break_nothing(void **state)
{
    static uint8_t whole[1 << 18], broken[1 << 18];
    const struct fixture fixture = compile("whole", "-g -fPIE -pie");
    uint64_t random = 31;
    (void)state;

    FILE *file = fopen(fixture.path, "rb");
    assert_non_null(file);
    const size_t length = fread(whole, 1, sizeof(whole), file);
    (void)fclose(file);
    assert_in_range(length, 4096, sizeof(whole) - 1);
    for (unsigned i = 0; i < 150; i++) {
        struct fixture other = {0};
        size_t size = length;
        memcpy(broken, whole, length);
        if (i % 3 == 0)
            size = random_below(&random, (uint32_t)length);
        for (unsigned k = 0; k < 1 + i % 20; k++) {
            /* The headers at both ends are where it hurts. */
            const uint32_t span = i % 2 ? 1024 : (uint32_t)length;
            const size_t at =
                k % 2 ? random_below(&random, span) : length - 1 - random_below(&random, span);
            broken[at] = (uint8_t)next_random(&random);
        }
        (void)snprintf(other.path, sizeof(other.path), "%s/broken%u", folder, i);
        file = fopen(other.path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(broken, 1, size, file), size);
        (void)fclose(file);
        for (unsigned k = 0; k < 4; k++)
            assert_true(resolve(&other, fixture.main_at + k * 16)->count >= 1);
        assert_true(resolve(&other, fixture.inlined_at)->count >= 1);
    }
}

static void an_answer_is_given_once_and_kept(void **state)
{
    const struct fixture fixture = compile("kept", "-g -fPIE -pie");
    uint32_t first, second, other;
    (void)state;

    const struct ttm_symbol *symbol = resolve(&fixture, fixture.main_at);
    assert_int_equal(unlink(fixture.path), 0);
    for (uint64_t i = 0; i < 200; i++)
        (void)resolve(&fixture, fixture.main_at + i);
    assert_ptr_equal(resolve(&fixture, fixture.main_at), symbol);
    assert_int_equal(ttm_symbols_module(symbols, fixture.path, fixture.build_id, &first), 0);
    assert_int_equal(ttm_symbols_module(symbols, fixture.path, fixture.build_id, &second), 0);
    assert_int_equal(ttm_symbols_module(symbols, fixture.path, "", &other), 0);
    assert_int_equal(first, second);
    assert_int_not_equal(first, other);
}

#define WITH_SYMBOLS(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SYMBOLS(without_debug_information_functions_have_names),
        WITH_SYMBOLS(with_debug_information_there_are_lines_and_inlined_functions),
        WITH_SYMBOLS(a_relative_file_is_found_from_the_folder_of_the_compiler),
        WITH_SYMBOLS(a_stripped_program_has_what_it_exports),
        WITH_SYMBOLS(a_separate_debug_file_is_found_by_build_id),
        WITH_SYMBOLS(a_debug_file_does_where_the_module_is_gone),
        WITH_SYMBOLS(a_module_that_is_gone_or_another_one_is_not_guessed_about),
        WITH_SYMBOLS(without_a_build_id_the_file_is_taken_as_it_is),
        WITH_SYMBOLS(a_module_that_is_no_regular_file_is_not_opened),
        WITH_SYMBOLS(a_debug_link_to_a_fifo_is_not_waited_for),
        WITH_SYMBOLS(a_debug_link_is_followed),
        WITH_SYMBOLS(a_debug_link_to_another_build_is_not_believed),
        WITH_SYMBOLS(split_debug_information_in_a_fifo_is_not_waited_for),
        WITH_SYMBOLS(a_common_debug_file_that_is_a_fifo_is_not_waited_for),
        WITH_SYMBOLS(what_is_no_elf_file_has_no_names),
        WITH_SYMBOLS(broken_elf_files_break_nothing),
        WITH_SYMBOLS(an_answer_is_given_once_and_kept),
    };

    /* NOLINTNEXTLINE(cert-env33-c): a question to the shell */
    if (system("command -v cc objcopy strip >/dev/null") != 0) {
        puts("needs cc, objcopy and strip");
        return 77;
    }
    (void)unsetenv("DEBUGINFOD_URLS"); /* no network in tests */
    (void)alarm(120);                  /* a FIFO that is waited for */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
