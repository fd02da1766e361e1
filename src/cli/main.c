/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/child.h"
#include "cli/command.h"

/* In the order of --help. */
/* clang-format off */
const struct ttm_command *const ttm_commands[] = {
    &ttm_command_run,
    &ttm_command_report,
    &ttm_command_history,
    &ttm_command_diff,
    &ttm_command_import,
    &ttm_command_export,
    &ttm_command_top,
    &ttm_command_serve,
    &ttm_command_status,
    &ttm_command_monitor,
    &ttm_command_dump,
    &ttm_command_tail,
    &ttm_command_devices,
    &ttm_command_ps,
    &ttm_command_env,
    &ttm_command_enable,
    &ttm_command_disable,
    &ttm_command_demo,
    NULL,
};
/* clang-format on */

static void print_help(void)
{
    printf("usage: tt-mem COMMAND [OPTION…]\n\n"
           "What is in a Tenstorrent device's memory, and who put it there.\n\n"
           "commands:\n");
    for (size_t i = 0; ttm_commands[i]; i++)
        printf("  %-9s %s\n", ttm_commands[i]->name, ttm_commands[i]->summary);
    printf("\n  tt-mem COMMAND --help   the options of a command\n"
           "  tt-mem --version        the version\n"
           "  tt-mem demo             start here: no hardware needed\n");
}

static const struct ttm_command *find_command(const char *name)
{
    for (size_t i = 0; ttm_commands[i]; i++) {
        if (strcmp(ttm_commands[i]->name, name) == 0)
            return ttm_commands[i];
    }
    return NULL;
}

/*
 * Where one of the standard streams is closed, no file of ours is to get its number: what is said
 * would be written to it. What stands there instead can neither be read nor written, and whom we
 * start gets it closed.
 */
static void keep_standard_numbers(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", O_CLOEXEC | (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY));
    }
}

static int run(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "--help";

    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        const struct ttm_command *command = argc > 2 ? find_command(argv[2]) : NULL;
        if (command)
            return command->run(2, (char *[]){argv[2], "--help", NULL});
        if (argc > 2) {
            ttm_log("there is no command '%s' (see tt-mem --help)", argv[2]);
            return TTM_EXIT_USAGE;
        }
        print_help();
        return argc > 1 ? TTM_EXIT_OK : TTM_EXIT_USAGE;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("tt-mem %s\n", TTM_VERSION);
        return TTM_EXIT_OK;
    }
    if (strcmp(word, "--completion") == 0)
        return ttm_completion_print(argc > 2 ? argv[2] : "");
    const struct ttm_command *command = find_command(word);
    if (!command) {
        ttm_log("there is no command '%s' (see tt-mem --help)", word);
        return TTM_EXIT_USAGE;
    }
    return command->run(argc - 1, argv + 1);
}

/* Help is printed by stdio, which says at the end whether it was written. */
static int finish(int status)
{
    errno = 0;
    if ((fflush(stdout) == 0 && !ferror(stdout)) || status != TTM_EXIT_OK)
        return status;
    ttm_log("cannot write the output: %s", strerror(errno ? errno : EIO));
    return TTM_EXIT_FAILED;
}

int main(int argc, char **argv)
{
    keep_standard_numbers();
    ttm_child_ignore_limits();
    (void)setlocale(LC_ALL, "");
    (void)setlocale(LC_NUMERIC, "C"); /* numbers are for programs too */
    return finish(run(argc, argv));
}
