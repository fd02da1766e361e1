/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The completion scripts are made from the tables when tt-mem is built, so they
 * cannot fall behind.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/command.h"

/* Whether the name of an argument says that it is a file. */
static bool is_file(const char *arg)
{
    static const char *const names[] = {"PATH", "FILE", "SOCKET", "DIR", "OUT"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(arg, names[i]) == 0)
            return true;
    }
    return false;
}

static void print_bash_forms(const struct ttm_option *option, const char *before,
                             const char *between)
{
    if (option->id < 256)
        printf("%s-%c", before, option->id);
    if (option->name)
        printf("%s--%s", option->id < 256 ? between : before, option->name);
}

static void print_bash_words(const struct ttm_command *command)
{
    for (const struct ttm_option *o = command->options; o->id; o++) {
        if (!o->is_hidden)
            print_bash_forms(o, " ", " ");
    }
}

/* What follows an option that wants an argument. Where nothing is offered, the shell offers files. */
static void print_bash_arguments(const struct ttm_command *command)
{
    for (const struct ttm_option *o = command->options; o->id; o++) {
        if (o->is_hidden || !o->arg || o->arg[0] == '[')
            continue;
        print_bash_forms(o, "            ", "|");
        if (o->choices)
            printf(") COMPREPLY=($(compgen -W \"%s\" -- \"$word\")); return ;;\n", o->choices);
        else
            printf(is_file(o->arg) ? ") return ;;\n" : ") compopt +o default; return ;;\n");
    }
}

/* Behind those that run another program: what the shell can run. */
static void print_bash_command(const struct ttm_command *command)
{
    printf("    %s)\n"
           "        case $before in\n",
           command->name);
    print_bash_arguments(command);
    printf("        esac\n"
           "        words=\"");
    print_bash_words(command);
    printf("\"\n");
    if (command->takes_command)
        printf("        if [ \"${word#-}\" = \"$word\" ]; then\n"
               "            COMPREPLY=($(compgen -c -f -- \"$word\"))\n"
               "            return\n"
               "        fi\n");
    printf("        ;;\n");
}

static void print_bash(void)
{
    printf("# bash completion for tt-mem, made from its option tables\n"
           "_tt_mem()\n{\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local words=\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        words=\"--help --version");
    for (size_t i = 0; ttm_commands[i]; i++)
        printf(" %s", ttm_commands[i]->name);
    printf("\"\n"
           "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "        return\n    fi\n"
           "    case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; ttm_commands[i]; i++)
        print_bash_command(ttm_commands[i]);
    printf("    esac\n"
           "    if [ \"${word#-}\" != \"$word\" ]; then\n"
           "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "    fi\n"
           "}\ncomplete -o default -F _tt_mem tt-mem\n");
}

/* Text inside a zsh specification in single quotes. */
static void print_zsh_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            printf("'\\''");
        else if (strchr("[]:\\", *text))
            printf("\\%c", *text);
        else
            (void)putchar(*text);
    }
}

static void print_zsh_option(const struct ttm_option *option)
{
    const char *const forms[] = {option->id < 256 ? "-" : NULL, option->name ? "--" : NULL};

    for (size_t i = 0; i < 2; i++) {
        if (!forms[i])
            continue;
        printf(" \\\n                '*");
        if (i == 0)
            printf("-%c", option->id);
        else
            printf("--%s", option->name);
        printf("[");
        print_zsh_text(option->help);
        printf("]");
        if (option->arg) {
            printf(":");
            print_zsh_text(option->arg);
            if (option->choices)
                printf(":(%s)", option->choices);
            else
                printf(":%s", is_file(option->arg) ? "_files" : "");
        }
        printf("'");
    }
}

static void print_zsh(void)
{
    printf("#compdef tt-mem\n# zsh completion for tt-mem, made from its option tables\n"
           "local -a commands\ncommands=(\n");
    for (size_t i = 0; ttm_commands[i]; i++) {
        printf("    '%s:", ttm_commands[i]->name);
        print_zsh_text(ttm_commands[i]->summary);
        printf("'\n");
    }
    printf(")\nif (( CURRENT == 2 )); then\n"
           "    _describe command commands\n"
           "else\n    case ${words[2]} in\n");
    for (size_t i = 0; ttm_commands[i]; i++) {
        printf("        %s)\n            shift words; (( CURRENT-- ))\n            _arguments",
               ttm_commands[i]->name);
        for (const struct ttm_option *o = ttm_commands[i]->options; o->id; o++) {
            if (!o->is_hidden)
                print_zsh_option(o);
        }
        printf(ttm_commands[i]->takes_command ? " \\\n                '*:::command:_normal'"
                                              : " \\\n                '*:file:_files'");
        printf(" ;;\n");
    }
    printf("    esac\nfi\n");
}

int ttm_completion_print(const char *shell)
{
    if (strcmp(shell, "bash") == 0)
        print_bash();
    else if (strcmp(shell, "zsh") == 0)
        print_zsh();
    else {
        ttm_log("completions are made for bash and zsh, not for '%s'", shell);
        return TTM_EXIT_USAGE;
    }
    return TTM_EXIT_OK;
}
