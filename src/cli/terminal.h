/* SPDX-License-Identifier: Apache-2.0 */
/*
 * terminal - what the output can show: colour, UTF-8, width.
 */
#ifndef TTM_CLI_TERMINAL_H
#define TTM_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct ttm_terminal {
    bool is_terminal;
    bool has_colour; /* a terminal, and NO_COLOR is not set */
    bool can_redraw; /* a terminal whose cursor can be moved */
    bool has_utf8;
    size_t columns;
    size_t rows;
};

/* Looks at 'fd' and the environment; 80 by 24 where nothing is known. */
struct ttm_terminal ttm_terminal_of(int fd);

enum ttm_colour { TTM_PLAIN, TTM_BOLD, TTM_DIM, TTM_GREEN, TTM_YELLOW, TTM_RED };

/* Switches the colour from here on; nothing where there is none. */
void ttm_terminal_colour(const struct ttm_terminal *terminal, struct ttm_text *out,
                         enum ttm_colour colour);

/* A bar of 'columns' cells, filled by part of whole; more than all is shown as full. */
void ttm_terminal_bar(const struct ttm_terminal *terminal, struct ttm_text *out, uint64_t part,
                      uint64_t whole, size_t columns);

/* Green, from 75 % yellow, from 90 % red. */
enum ttm_colour ttm_terminal_load_colour(uint64_t part, uint64_t whole);

/* " · ", or " - " without UTF-8; and the like. */
const char *ttm_terminal_dot(const struct ttm_terminal *terminal);
const char *ttm_terminal_ellipsis(const struct ttm_terminal *terminal);

/* A command line for people: the program without its folders, harmless to the terminal. */
void ttm_terminal_command(struct ttm_text *out, const char *command);

/* How many columns a line takes; colours take none. */
size_t ttm_terminal_width(const char *line);

/*
 * Cuts every line of 'text' to the width of the terminal, with a mark at the end of what was cut;
 * colours take no width. Text that is not for a terminal is left as it is, but for arrows where there is
 * no UTF-8.
 */
void ttm_terminal_fit(const struct ttm_terminal *terminal, const struct ttm_text *text,
                      struct ttm_text *out);

/* Writes all of it to 'fd', as ttm_terminal_print() does to stdout. */
int ttm_terminal_write(int fd, const struct ttm_text *text);

/*
 * Writes all of it to stdout. Returns 0, or -errno when the reader is gone or the disk is full; -EINTR
 * when the user has stopped the command while nobody read.
 */
int ttm_terminal_print(const struct ttm_text *text);

#endif /* TTM_CLI_TERMINAL_H */
