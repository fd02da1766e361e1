/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <sys/mman.h>
#include <unistd.h>

#include "stack/probe.h"

#define PAGE 4096u

/* Two pages that can be read and one that cannot. */
static char *make_pages(void)
{
    char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + 2 * PAGE, PAGE, PROT_NONE), 0);
    return pages;
}

static void memory_that_is_there_is_readable_up_to_its_last_byte(void **state)
{
    char *pages = make_pages();
    (void)state;

    assert_true(ttm_probe((uintptr_t)pages, 2 * PAGE));
    assert_true(ttm_probe((uintptr_t)pages + 2 * PAGE - 1, 1));
    assert_true(ttm_probe((uintptr_t)pages + 3, 5));
    assert_false(ttm_probe((uintptr_t)pages, 2 * PAGE + 1));
    assert_false(ttm_probe((uintptr_t)pages + 2 * PAGE - 1, 2));
    assert_false(ttm_probe((uintptr_t)pages + 2 * PAGE, 8));
    munmap(pages, 3 * PAGE);
}

static void a_hole_in_the_middle_is_found(void **state)
{
    char *pages = make_pages();
    (void)state;

    assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
    assert_int_equal(mprotect(pages + 2 * PAGE, PAGE, PROT_READ), 0);
    assert_false(ttm_probe((uintptr_t)pages, 3 * PAGE));
    assert_true(ttm_probe((uintptr_t)pages + 2 * PAGE, PAGE));
    munmap(pages, 3 * PAGE);
}

static void addresses_that_nobody_has_are_not_readable(void **state)
{
    volatile uintptr_t nobodys = 16; /* the compiler would warn of what it can see */
    uint64_t value = 1;
    (void)state;

    assert_false(ttm_probe(0, 8));
    assert_false(ttm_probe(8, 8));
    assert_false(ttm_probe(UINTPTR_MAX - 7, 8));
    assert_false(ttm_probe(0xdeadbeefdeadbeefull, 8));
    assert_false(ttm_probe((uintptr_t)&value, SIZE_MAX));
    assert_false(ttm_probe((uintptr_t)&value, 0));
    assert_false(ttm_probe_u64(nobodys, &value));
    assert_true(value == 0);
}

static void asking_leaves_errno_alone(void **state)
{
    (void)state;

    errno = EXDEV;
    assert_false(ttm_probe(8, 8));
    assert_int_equal(errno, EXDEV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_that_is_there_is_readable_up_to_its_last_byte),
        cmocka_unit_test(a_hole_in_the_middle_is_found),
        cmocka_unit_test(addresses_that_nobody_has_are_not_readable),
        cmocka_unit_test(asking_leaves_errno_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
