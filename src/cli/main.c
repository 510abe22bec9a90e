/* carat: one binary, one subcommand a file. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "ops/cuda/device.h"

static int cmd_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    printf("carat " CT_VERSION " (backends: ref, cpu; CUDA %s)\n", !ct_cuda_built() ? "not built"
                                                                   : ct_cuda_n_devices()
                                                                       ? "present"
                                                                       : "built, no device");
    return ct_cli_end();
}

static const struct {
    const char *name, *help;
    ct_cmd_fn *fn;
} commands[] = {
    {"run", "one prompt in, one answer out", ct_cmd_run},
    {"tokenize", "text to token ids and back", ct_cmd_tokenize},
    {"render", "conversations to prompts by the chat template", ct_cmd_render},
    {"parse", "what the model wrote to content, reasoning and tool calls", ct_cmd_parse},
    {"logits", "token ids to logits and hidden states, as safetensors", ct_cmd_logits},
    {"inspect", "config, tensors, types, bytes; what the manifest says", ct_cmd_inspect},
    {"plan", "what a configuration takes, and what fits", ct_cmd_plan},
    {"eval", "perplexity of a text, distance to a reference", ct_cmd_eval},
    {"version", "print the version and what this build can use", cmd_version},
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
        return ct_cli_end();
    }
    if (!strcmp(argv[1], "--version"))
        return cmd_version(argc - 1, argv + 1);
    ct_cli_catch_signals();
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].fn(argc - 1, argv + 1);
    return ct_cli_usage("unknown command '%s'; `carat help` lists them", argv[1]);
}
