/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cards - the Tenstorrent cards of this machine, as the driver lists them.
 *
 * Reads /sys alone, never opens a device. Everything lies under one root prefix,
 * so that tests and recorded trees work.
 */
#ifndef TTM_TELEMETRY_CARDS_H
#define TTM_TELEMETRY_CARDS_H

#include <stddef.h>

#define TTM_CARD_NAME_SIZE 32

/* One chip. Its place in the list is the id that TT-Metal gives it. */
struct ttm_card {
    char bdf[TTM_CARD_NAME_SIZE];   /* "0000:41:00.0": the PCI address of the card */
    char board[TTM_CARD_NAME_SIZE]; /* "n300", as the driver spells it */
};

/*
 * Fills 'cards' with up to 'max' chips: those with a PCI function in the order of
 * their address, then the second chips of n300 cards, which are reached through
 * the first. 'root' is put before /sys ("" for the machine itself). Returns how
 * many there are; 0 where there is no driver.
 */
size_t ttm_cards_read(const char *root, struct ttm_card *cards, size_t max);

#endif /* TTM_TELEMETRY_CARDS_H */
