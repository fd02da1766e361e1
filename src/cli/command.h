/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command - what a subcommand is: its name, its options and what runs it.
 *
 * The tables are the one source of --help, of the completions and of the test
 * that compares them with the man pages.
 */
#ifndef TTM_CLI_COMMAND_H
#define TTM_CLI_COMMAND_H

#include <stdbool.h>

/* Exit status of every command. */
enum ttm_exit {
    TTM_EXIT_OK = 0,
    TTM_EXIT_FAILED = 1,
    TTM_EXIT_USAGE = 2,
    TTM_EXIT_FOUND = 3, /* what was checked for was found */
};

struct ttm_option {
    int id;           /* a letter is also the short form; others are > 255 */
    const char *name; /* without the dashes; NULL: short form only */
    const char *arg;  /* name of the argument, or NULL; "[=NAME]" may be left out */
    const char *help;
    const char *choices; /* what the argument may be, for completion; NULL: anything */
    bool is_hidden;      /* for our own use: in no help */
};

struct ttm_command {
    const char *name;
    const char *synopsis;              /* behind "tt-mem NAME", in --help */
    const char *summary;               /* one line */
    const char *details;               /* a paragraph or two for --help, may be NULL */
    const struct ttm_option *options;  /* ends with id 0 */
    int (*run)(int argc, char **argv); /* argv[0] is the subcommand; returns enum ttm_exit */
    bool takes_command;                /* another program's name and arguments come behind */
    bool takes_operands;               /* words that are no options */
};

/* Ends with a NULL. */
extern const struct ttm_command *const ttm_commands[];

extern const struct ttm_command ttm_command_run;
extern const struct ttm_command ttm_command_env;
extern const struct ttm_command ttm_command_enable;
extern const struct ttm_command ttm_command_disable;
extern const struct ttm_command ttm_command_serve;
extern const struct ttm_command ttm_command_status;
extern const struct ttm_command ttm_command_monitor;
extern const struct ttm_command ttm_command_top;
extern const struct ttm_command ttm_command_dump;
extern const struct ttm_command ttm_command_tail;
extern const struct ttm_command ttm_command_report;
extern const struct ttm_command ttm_command_history;
extern const struct ttm_command ttm_command_diff;
extern const struct ttm_command ttm_command_import;
extern const struct ttm_command ttm_command_export;
extern const struct ttm_command ttm_command_devices;
extern const struct ttm_command ttm_command_ps;
extern const struct ttm_command ttm_command_demo;

/* Prints the completion script for "bash" or "zsh", made from the tables. Returns enum ttm_exit. */
int ttm_completion_print(const char *shell);

#endif /* TTM_CLI_COMMAND_H */
