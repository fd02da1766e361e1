/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options - reads a command line by its command's table.
 */
#ifndef TTM_CLI_OPTIONS_H
#define TTM_CLI_OPTIONS_H

#include <stdint.h>

#include "cli/command.h"
#include "wire/request.h"

/* Ids of options that several commands share and that have no letter. */
enum { TTM_OPTION_AFTER_MARK = 1024, TTM_OPTION_WARMUP };

#define TTM_OPTION_END 0
#define TTM_OPTION_WRONG (-1) /* already said; exit with TTM_EXIT_USAGE */
#define TTM_OPTION_HELP (-2)  /* already printed; exit with TTM_EXIT_OK */

struct ttm_options {
    const struct ttm_command *command;
    int argc;
    char **argv;
    const char *value; /* of the option just returned */
    char letters[160];
};

void ttm_options_init(struct ttm_options *options, const struct ttm_command *command, int argc,
                      char **argv);

/*
 * The id of the next option, or one of TTM_OPTION_*. Operands are refused, unless
 * the command takes another program's name: then the options end before it.
 */
int ttm_options_next(struct ttm_options *options);

/* After TTM_OPTION_END: the words that are left, ending with a NULL. */
char **ttm_options_rest(const struct ttm_options *options);

/* "tt-mem dump: <message> (see tt-mem dump --help)". Returns TTM_OPTION_WRONG. */
int ttm_options_complain(const struct ttm_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The value as a number within bounds; complains and returns TTM_OPTION_WRONG when it is not. */
int ttm_options_number(const struct ttm_options *options, const char *what, uint64_t min,
                       uint64_t max, uint64_t *ret);

/* The value as a number of bytes: "4096", "64K", "2M" or "2MiB", "2MB". */
int ttm_options_bytes(const struct ttm_options *options, uint64_t *ret);

/* The value as a time: "30" or "0.5" seconds. */
int ttm_options_seconds(const struct ttm_options *options, uint64_t *ret_ns);

struct ttm_report_options;

/* Reads --after-mark or --warmup, which exclude each other; 'id' says which. */
int ttm_options_leak_start(const struct ttm_options *options, int id,
                           struct ttm_report_options *ret);

/* Adds a comma list of device ids to the filter, which is no longer "all" then. */
int ttm_options_devices(const struct ttm_options *options, struct ttm_device_filter *filter);

void ttm_options_print_help(const struct ttm_command *command);

/* Options that several commands share. */
#define TTM_OPTION_DEVICE                                                                          \
    {                                                                                              \
        .id = 'd', .name = "device", .arg = "LIST",                                                \
        .help = "only these devices: 0 or 0,2,3; repeatable"                                       \
    }
#define TTM_REGION_CHOICES "DRAM L1 SYSTEM_MEMORY L1_SMALL TRACE CB KERNEL"
#define TTM_OPTION_SOCKET                                                                          \
    {                                                                                              \
        .id = 's', .name = "socket", .arg = "PATH", .help = "ask the server that listens there"    \
    }
#define TTM_OPTIONS_LEAK_START                                                                     \
    {.id = TTM_OPTION_AFTER_MARK,                                                                  \
     .name = "after-mark",                                                                         \
     .arg = "NAME",                                                                                \
     .help = "look for leaks only after this mark"},                                               \
    {                                                                                              \
        .id = TTM_OPTION_WARMUP, .name = "warmup", .arg = "SECONDS",                               \
        .help = "look for leaks only when this time has passed"                                    \
    }
#define TTM_OPTION_JSON                                                                            \
    {                                                                                              \
        .id = 'j', .name = "json", .help = "write JSON, for programs"                              \
    }
#define TTM_OPTION_HELP_ROW                                                                        \
    {                                                                                              \
        .id = 'h', .name = "help", .help = "show this help"                                        \
    }

#endif /* TTM_CLI_OPTIONS_H */
