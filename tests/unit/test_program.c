/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <elf.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/program.h"

static char folder[64];

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof(folder), "/tmp/ttm-program-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(folder);
}

/* A file in the folder with that mode; the caller removes it. */
static const char *make(const char *name, const void *data, size_t length, mode_t mode)
{
    static char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static void a_program_is_found_as_a_shell_finds_it(void **state)
{
    char found[PATH_MAX], path[256];
    const char *made = make("prog", "x", 1, 0755);
    (void)state;

    (void)snprintf(path, sizeof(path), "/no/such/folder:%s:/bin", folder);
    assert_int_equal(ttm_program_find("prog", path, found), 0);
    assert_string_equal(found, made);
    assert_int_equal(ttm_program_find(made, NULL, found), 0);
    assert_string_equal(found, made);
    assert_int_equal(ttm_program_find("prog", "/no/such/folder", found), -ENOENT);
    assert_int_equal(ttm_program_find("", path, found), -ENOENT);
    assert_int_equal(ttm_program_find(folder, NULL, found), -ENOENT);
    assert_int_equal(ttm_program_find("sh", NULL, found), 0);
    assert_int_equal(unlink(made), 0);
}

static void a_file_that_cannot_be_executed_is_passed_over(void **state)
{
    char found[PATH_MAX];
    const char *made = make("text", "x", 1, 0644);
    (void)state;

    assert_int_equal(ttm_program_find("text", folder, found), -ENOENT);
    assert_int_equal(unlink(made), 0);
}

/* As much of a program as is looked at. */
struct image {
    ElfW(Ehdr) head;
    ElfW(Phdr) segments[2];
    char loader[32];
};

static struct image image_with(const char *loader)
{
    struct image image = {
        .head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3,
                             sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32},
                 .e_phoff = offsetof(struct image, segments),
                 .e_phentsize = sizeof(ElfW(Phdr)),
                 .e_phnum = 2},
        .segments = {{.p_type = PT_LOAD}, {.p_type = loader ? PT_INTERP : PT_LOAD}},
    };

    FILE *self = fopen("/proc/self/exe", "rb");
    ElfW(Ehdr) own;
    assert_non_null(self);
    assert_int_equal(fread(&own, sizeof(own), 1, self), 1);
    (void)fclose(self);
    image.head.e_machine = own.e_machine;
    if (loader) {
        (void)snprintf(image.loader, sizeof(image.loader), "%s", loader);
        image.segments[1].p_offset = offsetof(struct image, loader);
        image.segments[1].p_filesz = strlen(loader) + 1;
    }
    return image;
}

static enum ttm_program look_at(const void *data, size_t length, mode_t mode)
{
    const char *path = make("prog", data, length, mode);
    const enum ttm_program found = ttm_program_look(path);

    assert_int_equal(unlink(path), 0);
    return found;
}

static void what_a_library_can_be_loaded_into_is_told_from_the_head(void **state)
{
    struct image image = image_with("/lib64/ld-linux-x86-64.so.2");
    (void)state;

    assert_int_equal(ttm_program_look("/proc/self/exe"), TTM_PROGRAM_ORDINARY);
    assert_int_equal(look_at(&image, sizeof(image), 0755), TTM_PROGRAM_ORDINARY);
    image = image_with(NULL);
    assert_int_equal(look_at(&image, sizeof(image), 0755), TTM_PROGRAM_STATIC);
    image = image_with("/lib/ld-musl-x86_64.so.1");
    assert_int_equal(look_at(&image, sizeof(image), 0755), TTM_PROGRAM_FOREIGN);
    image = image_with("/lib64/ld-linux-x86-64.so.2");
    image.head.e_machine = EM_68K;
    assert_int_equal(look_at(&image, sizeof(image), 0755), TTM_PROGRAM_FOREIGN);
    image = image_with("/lib/ld-linux.so.2");
    image.head.e_ident[EI_CLASS] = sizeof(void *) == 8 ? ELFCLASS32 : ELFCLASS64;
    assert_int_equal(look_at(&image, sizeof(image), 0755), TTM_PROGRAM_FOREIGN);
}

static void what_cannot_be_told_is_taken_for_ordinary(void **state)
{
    static const char script[] = "#!/bin/sh\nexit 0\n";
    struct image image = image_with(NULL);
    (void)state;

    assert_int_equal(look_at(script, sizeof(script) - 1, 0755), TTM_PROGRAM_ORDINARY);
    assert_int_equal(look_at("", 0, 0755), TTM_PROGRAM_ORDINARY);
    assert_int_equal(ttm_program_look("/no/such/file"), TTM_PROGRAM_ORDINARY);
    for (size_t n = 0; n < sizeof(image.head); n++) /* cut off at each length */
        assert_int_equal(look_at(&image, n, 0755), TTM_PROGRAM_ORDINARY);
    assert_int_equal(look_at(&image, sizeof(image.head) + 3, 0755), TTM_PROGRAM_ORDINARY);
    image.head.e_phnum = 60000;
    assert_int_equal(look_at(&image, sizeof(image), 0755), TTM_PROGRAM_ORDINARY);
    image = image_with("/lib64/ld-linux-x86-64.so.2");
    image.segments[1].p_offset = UINT32_MAX;
    image.segments[1].p_filesz = UINT32_MAX;
    assert_int_equal(look_at(&image, sizeof(image), 0755), TTM_PROGRAM_ORDINARY);
}

static void one_of_ones_own_with_the_bit_set_is_ordinary(void **state)
{
    struct image image = image_with("/lib64/ld-linux-x86-64.so.2");
    (void)state;

    /* It runs as who runs it; that of another user is tested where there are several. */
    assert_int_equal(look_at(&image, sizeof(image), 04755), TTM_PROGRAM_ORDINARY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_program_is_found_as_a_shell_finds_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_cannot_be_executed_is_passed_over, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_a_library_can_be_loaded_into_is_told_from_the_head,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_told_is_taken_for_ordinary, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(one_of_ones_own_with_the_bit_set_is_ordinary, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
