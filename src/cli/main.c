/* carat: one binary, one subcommand a file. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *help;
    ct_cmd_fn *fn;
} commands[] = {
    {"version", "print the version", NULL},
};

static void print_help(FILE *out)
{
    fprintf(out, "usage: carat COMMAND -m MODEL [options]\n\ncommands:\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
    fprintf(out, "\n`carat COMMAND --help` lists the options of a command.\n");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return CT_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        print_help(stdout);
        return CT_EXIT_OK;
    }
    if (!strcmp(argv[1], "version") || !strcmp(argv[1], "--version")) {
        puts("carat " CT_VERSION);
        return CT_EXIT_OK;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].fn && !strcmp(argv[1], commands[i].name))
            return commands[i].fn(argc - 1, argv + 1);
    return ct_cli_usage("unknown command '%s'; `carat help` lists them", argv[1]);
}
