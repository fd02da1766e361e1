/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "telemetry/cards.h"

static char root[64];

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(root, sizeof(root), "/tmp/test_cards.XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int tear_down(void **state)
{
    (void)state;
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void make_folder(const char *path)
{
    char whole[256];

    (void)snprintf(whole, sizeof(whole), "%s%s", root, path);
    for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(whole, 0700);
        *at = '/';
    }
    assert_int_equal(mkdir(whole, 0700), 0);
}

/* One entry of /sys/class/tenstorrent; a NULL board leaves tt_card_type out. */
static void make_card(unsigned number, const char *bdf, const char *board)
{
    char path[256], target[256];

    (void)snprintf(path, sizeof(path), "/sys/class/tenstorrent/tenstorrent!%u", number);
    make_folder(path);
    (void)snprintf(path, sizeof(path), "%s/sys/class/tenstorrent/tenstorrent!%u/device", root,
                   number);
    (void)snprintf(target, sizeof(target), "../../../0000:00:01.0/%s", bdf);
    assert_int_equal(symlink(target, path), 0);
    if (!board)
        return;
    (void)snprintf(path, sizeof(path), "%s/sys/class/tenstorrent/tenstorrent!%u/tt_card_type", root,
                   number);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fprintf(file, "%s\n", board);
    assert_int_equal(fclose(file), 0);
}

static void without_a_driver_there_are_no_cards(void **state)
{
    struct ttm_card cards[4];
    (void)state;

    assert_int_equal(ttm_cards_read(root, cards, COUNT_OF(cards)), 0);
    make_folder("/sys/class/tenstorrent");
    assert_int_equal(ttm_cards_read(root, cards, COUNT_OF(cards)), 0);
}

static void cards_come_in_the_order_of_their_pci_address(void **state)
{
    struct ttm_card cards[8];
    (void)state;

    make_card(0, "0000:c1:00.0", "p150a");
    make_card(1, "0000:01:00.0", "n150");
    make_card(2, "0000:41:00.0", "p100a");
    assert_int_equal(ttm_cards_read(root, cards, COUNT_OF(cards)), 3);
    assert_string_equal(cards[0].bdf, "0000:01:00.0");
    assert_string_equal(cards[0].board, "n150");
    assert_string_equal(cards[1].board, "p100a");
    assert_string_equal(cards[2].bdf, "0000:c1:00.0");
}

static void the_second_chips_of_n300_cards_follow_all_first_ones(void **state)
{
    struct ttm_card cards[8];
    (void)state;

    make_card(0, "0000:01:00.0", "n300");
    make_card(1, "0000:02:00.0", "n150");
    make_card(2, "0000:03:00.0", "n300");
    assert_int_equal(ttm_cards_read(root, cards, COUNT_OF(cards)), 5);
    assert_string_equal(cards[2].bdf, "0000:03:00.0");
    assert_string_equal(cards[3].bdf, "0000:01:00.0");
    assert_string_equal(cards[4].bdf, "0000:03:00.0");
}

static void more_cards_than_asked_for_are_left_out(void **state)
{
    struct ttm_card cards[3];
    (void)state;

    for (unsigned i = 0; i < 5; i++)
        make_card(i, "0000:01:00.0", "n300");
    assert_int_equal(ttm_cards_read(root, cards, COUNT_OF(cards)), 3);
    assert_int_equal(ttm_cards_read(root, cards, 0), 0);
}

static void a_card_of_no_or_an_endless_type_is_listed(void **state)
{
    char endless[200];
    struct ttm_card cards[4];
    (void)state;

    memset(endless, 'x', sizeof(endless) - 1);
    endless[sizeof(endless) - 1] = '\0';
    make_card(0, "0000:01:00.0", NULL);
    make_card(1, "0000:02:00.0", endless);
    assert_int_equal(ttm_cards_read(root, cards, COUNT_OF(cards)), 2);
    assert_string_equal(cards[0].board, "unknown");
    assert_int_equal(strlen(cards[1].board), TTM_CARD_NAME_SIZE - 1);
}

static void what_is_no_card_is_passed_over(void **state)
{
    struct ttm_card cards[4];
    (void)state;

    make_card(0, "0000:01:00.0", "n150");
    make_folder("/sys/class/tenstorrent/power");
    assert_int_equal(ttm_cards_read(root, cards, COUNT_OF(cards)), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_driver_there_are_no_cards),
        TEST(cards_come_in_the_order_of_their_pci_address),
        TEST(the_second_chips_of_n300_cards_follow_all_first_ones),
        TEST(more_cards_than_asked_for_are_left_out),
        TEST(a_card_of_no_or_an_endless_type_is_listed),
        TEST(what_is_no_card_is_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
