/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal.h"

#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/interrupt.h"

static size_t number_from(const char *variable, size_t fallback)
{
    const char *text = getenv(variable);
    const long value = text ? strtol(text, NULL, 10) : 0;

    return value > 0 && value < 10000 ? (size_t)value : fallback;
}

struct ttm_terminal ttm_terminal_of(int fd)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    const bool is_dumb = term && strcmp(term, "dumb") == 0;
    struct ttm_terminal terminal = {.is_terminal = isatty(fd) == 1};
    struct winsize size = {0};

    terminal.can_redraw = terminal.is_terminal && !is_dumb;
    terminal.has_colour = terminal.can_redraw && !(no_colour && no_colour[0]);
    terminal.has_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    if (terminal.is_terminal)
        (void)ioctl(fd, TIOCGWINSZ, &size);
    terminal.columns = size.ws_col > 0 ? size.ws_col : number_from("COLUMNS", 80);
    terminal.rows = size.ws_row > 0 ? size.ws_row : number_from("LINES", 24);
    return terminal;
}

void ttm_terminal_colour(const struct ttm_terminal *terminal, struct ttm_text *out,
                         enum ttm_colour colour)
{
    static const char *const codes[] = {
        [TTM_PLAIN] = "\033[0m",  [TTM_BOLD] = "\033[1m",    [TTM_DIM] = "\033[2m",
        [TTM_GREEN] = "\033[32m", [TTM_YELLOW] = "\033[33m", [TTM_RED] = "\033[31m",
    };

    if (terminal->has_colour)
        ttm_text_append(out, codes[colour]);
}

void ttm_terminal_bar(const struct ttm_terminal *terminal, struct ttm_text *out, uint64_t part,
                      uint64_t whole, size_t columns)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const double share = whole > 0 ? (double)part / (double)whole : 0;
    size_t filled = share >= 1 ? columns * 8 : (size_t)(share * (double)columns * 8 + 0.5);

    if (part > 0 && filled == 0 && columns > 0)
        filled = 1; /* a little is not nothing */
    if (!terminal->has_utf8)
        filled = (filled + 7) / 8 * 8;
    ttm_text_repeat(out, terminal->has_utf8 ? "█" : "#", filled / 8);
    ttm_text_append(out, eighths[filled % 8]);
    ttm_text_repeat(out, " ", columns - (filled + 7) / 8);
}

enum ttm_colour ttm_terminal_load_colour(uint64_t part, uint64_t whole)
{
    const double share = whole > 0 ? (double)part / (double)whole : 0;

    return share >= 0.9 ? TTM_RED : share >= 0.75 ? TTM_YELLOW : TTM_GREEN;
}

const char *ttm_terminal_dot(const struct ttm_terminal *terminal)
{
    return terminal->has_utf8 ? " · " : " - ";
}

const char *ttm_terminal_ellipsis(const struct ttm_terminal *terminal)
{
    return terminal->has_utf8 ? "…" : "...";
}

void ttm_terminal_command(struct ttm_text *out, const char *command)
{
    const size_t first = strcspn(command, " ");

    for (size_t i = first; i > 0; i--) {
        if (command[i - 1] == '/') {
            command += i;
            break;
        }
    }
    ttm_text_append_safe(out, command);
}

/* Length of the colour code at 's', or 0 when there is none. */
static size_t code_length(const char *s)
{
    if (s[0] != '\033' || s[1] != '[')
        return 0;
    const size_t n = strcspn(s, "m");
    return s[n] == 'm' ? n + 1 : 0;
}

static size_t width_up_to(const char *line, const char *end)
{
    size_t columns = 0;

    while (line < end) {
        const size_t code = code_length(line);
        const size_t n = code ? code : ttm_utf8_length(line);
        columns += code == 0;
        line += n ? n : 1;
    }
    return columns;
}

size_t ttm_terminal_width(const char *line)
{
    return width_up_to(line, line + strlen(line));
}

/* So many columns of a line, and all its colours: what is switched on is switched off again. */
static void put_columns(const char *line, const char *end, size_t columns, const char *mark,
                        struct ttm_text *out)
{
    size_t column = 0;

    while (line < end) {
        const size_t code = code_length(line);
        const size_t length = code ? code : ttm_utf8_length(line);
        const size_t n = length ? length : 1;
        column += code == 0;
        if (code == 0 && column == columns + 1)
            ttm_text_append(out, mark);
        if (code > 0 || column <= columns)
            ttm_text_append_bytes(out, line, n);
        line += n;
    }
}

/* Callers come with an arrow from where nothing is known of terminals. */
static void put_with_plain_arrows(struct ttm_text *out, const char *s)
{
    static const char arrow[] = "←";

    for (const char *at; (at = strstr(s, arrow)) != NULL; s = at + strlen(arrow)) {
        ttm_text_append_bytes(out, s, (size_t)(at - s));
        ttm_text_append(out, "<");
    }
    ttm_text_append(out, s);
}

static void fit(const struct ttm_terminal *terminal, const struct ttm_text *text,
                struct ttm_text *out)
{
    const char *s = ttm_text_string(text);
    const char *mark = terminal->has_utf8 ? "…" : "";

    if (!terminal->is_terminal) {
        ttm_text_append_bytes(out, s, text->length);
        return;
    }
    while (*s) {
        const char *end = strchrnul(s, '\n');
        const bool is_cut = width_up_to(s, end) > terminal->columns;
        put_columns(s, end, terminal->columns - (is_cut && terminal->has_utf8), mark, out);
        if (*end)
            ttm_text_append(out, "\n");
        s = end + (*end != '\0');
    }
}

void ttm_terminal_fit(const struct ttm_terminal *terminal, const struct ttm_text *text,
                      struct ttm_text *out)
{
    struct ttm_text plain;

    if (terminal->has_utf8) {
        fit(terminal, text, out);
        return;
    }
    ttm_text_init(&plain);
    put_with_plain_arrows(&plain, ttm_text_string(text));
    fit(terminal, &plain, out);
    out->failed |= ttm_text_failed(text) || ttm_text_failed(&plain);
    ttm_text_done(&plain);
}

/*
 * A command that notes signals must not hang in a write to a pipe that nobody reads. What is
 * ready takes PIPE_BUF bytes at once. Returns false when a signal came first.
 */
static bool await_reader(int fd)
{
    struct pollfd pollfd = {.fd = fd, .events = POLLOUT};

    if (!ttm_interrupt_is_caught())
        return true;
    do
        ttm_interrupt_poll(&pollfd, 1, -1);
    while (pollfd.revents == 0 && !ttm_interrupt_came());
    return pollfd.revents != 0 || poll(&pollfd, 1, 0) > 0; /* it may have come long before */
}

int ttm_terminal_write(int fd, const struct ttm_text *text)
{
    const char *at = ttm_text_string(text);
    size_t left = text->length;

    if (ttm_text_failed(text))
        return -ENOMEM;
    /* Not through stdio: whoever hangs here would hold its lock and keep the process from ending. */
    while (left > 0) {
        const size_t length = left < PIPE_BUF || !ttm_interrupt_is_caught() ? left : PIPE_BUF;
        if (!await_reader(fd))
            return -EINTR;
        const ssize_t n = write(fd, at, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        at += n;
        left -= (size_t)n;
    }
    return 0;
}

int ttm_terminal_print(const struct ttm_text *text)
{
    (void)fflush(stdout); /* what printf() was given comes first */
    return ttm_terminal_write(STDOUT_FILENO, text);
}
