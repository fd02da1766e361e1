/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The completion scripts are made from the tables when tt-mem is built, so they
 * cannot fall behind.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/command.h"

static void print_bash_words(const struct ttm_command *command)
{
    for (const struct ttm_option *o = command->options; o->id; o++) {
        if (o->is_hidden)
            continue;
        if (o->id < 256)
            printf(" -%c", o->id);
        if (o->name)
            printf(" --%s", o->name);
    }
}

/* The options after which a file's name may follow. */
static void print_bash_files(void)
{
    printf("        --socket|-s|--legacy-socket|--log|--connect)\n"
           "            COMPREPLY=($(compgen -f -- \"$word\"))\n"
           "            return ;;\n");
}

/* Behind those that run another program: what the shell can run. */
static void print_bash_commands(void)
{
    for (size_t i = 0; ttm_commands[i]; i++) {
        if (ttm_commands[i]->takes_command)
            printf("    if [ \"$COMP_CWORD\" -gt 1 ] && [ \"${COMP_WORDS[1]}\" = %s ] && "
                   "[ \"${word#-}\" = \"$word\" ]; then\n"
                   "        COMPREPLY=($(compgen -c -f -- \"$word\"))\n"
                   "        return\n    fi\n",
                   ttm_commands[i]->name);
    }
}

static void print_bash(void)
{
    printf("# bash completion for tt-mem, made from its option tables\n"
           "_tt_mem()\n{\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local words=\n"
           "    case $before in\n");
    print_bash_files();
    printf("    esac\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        words=\"--help --version");
    for (size_t i = 0; ttm_commands[i]; i++)
        printf(" %s", ttm_commands[i]->name);
    printf("\"\n    else\n        case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; ttm_commands[i]; i++) {
        printf("        %s) words=\"", ttm_commands[i]->name);
        print_bash_words(ttm_commands[i]);
        printf("\" ;;\n");
    }
    printf("        esac\n    fi\n");
    print_bash_commands();
    printf("    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "}\ncomplete -F _tt_mem tt-mem\n");
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
            const bool is_file = strcmp(option->arg, "PATH") == 0 ||
                                 strcmp(option->arg, "FILE") == 0 ||
                                 strcmp(option->arg, "SOCKET") == 0;
            printf(":");
            print_zsh_text(option->arg);
            printf(":%s", is_file ? "_files" : "");
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
        if (ttm_commands[i]->takes_command)
            printf(" \\\n                '*:::command:_normal'");
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
