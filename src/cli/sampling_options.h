/* The options of sampling, shared by the commands that generate.  What the command line
 * leaves open is the checkpoint's to say. */
#ifndef CT_CLI_SAMPLING_OPTIONS_H
#define CT_CLI_SAMPLING_OPTIONS_H

#include "cli/options.h"
#include "engine/sampling.h"
#include "text/tokenizer.h"

typedef struct ct_sampling_args {
    ct_sampling p; /* what the command line says, where it does */
    bool temperature, top_k, top_p, min_p, typical_p, repetition_penalty, seed; /* it does */
    ct_option_list stop;
    bool include_stop;
    uint32_t *breakers; /* owned */
} ct_sampling_args;

/* Rows of the table; a is a ct_sampling_args that ct_sampling_args_init has set up. */
#define CT_SAMPLING_OPTIONS(a)                                                                     \
    {"--temp",   "--temperature",          CT_OPTION_DOUBLE, .out = &(a).p.temperature,            \
     .max = 100, .given = &(a).temperature},                                                       \
        {"--top-k",          NULL, CT_OPTION_U32, .out = &(a).p.top_k, .max = INT32_MAX,           \
         .given = &(a).top_k},                                                                     \
        {"--top-p", NULL, CT_OPTION_DOUBLE, .out = &(a).p.top_p, .max = 1, .given = &(a).top_p},   \
        {"--min-p", NULL, CT_OPTION_DOUBLE, .out = &(a).p.min_p, .max = 1, .given = &(a).min_p},   \
        {"--typical-p", NULL,     CT_OPTION_DOUBLE,       .out = &(a).p.typical_p,                 \
         .min = 1e-9,   .max = 1, .given = &(a).typical_p},                                        \
        {"--repeat-penalty",                                                                       \
         "--repetition-penalty",                                                                   \
         CT_OPTION_DOUBLE,                                                                         \
         .out = &(a).p.repetition_penalty,                                                         \
         .min = 1e-9,                                                                              \
         .max = 100,                                                                               \
         .given = &(a).repetition_penalty},                                                        \
        {"--presence-penalty",           NULL,      CT_OPTION_DOUBLE,                              \
         .out = &(a).p.presence_penalty, .min = -2, .max = 2},                                     \
        {"--frequency-penalty",           NULL,      CT_OPTION_DOUBLE,                             \
         .out = &(a).p.frequency_penalty, .min = -2, .max = 2},                                    \
        {"--dry-multiplier", NULL, CT_OPTION_DOUBLE, .out = &(a).p.dry_multiplier, .max = 100},    \
        {"--dry-base", NULL, CT_OPTION_DOUBLE, .out = &(a).p.dry_base, .min = 1, .max = 100},      \
        {"--dry-allowed-length",           NULL,     CT_OPTION_U32,                                \
         .out = &(a).p.dry_allowed_length, .min = 1, .max = 65536},                                \
        {"--dry-last-n", NULL, CT_OPTION_U32, .out = &(a).p.dry_last_n, .max = INT32_MAX},         \
        {"--min-tokens", NULL, CT_OPTION_U32, .out = &(a).p.min_tokens, .max = INT32_MAX},         \
        {"--ignore-eos", NULL, CT_OPTION_FLAG, .out = &(a).p.ignore_eos},                          \
        {"--seed", NULL, CT_OPTION_U64, .out = &(a).p.seed, .given = &(a).seed},                   \
        {"--stop", NULL, CT_OPTION_LIST, .out = &(a).stop},                                        \
    {                                                                                              \
        "--include-stop", NULL, CT_OPTION_FLAG, .out = &(a).include_stop                           \
    }

/* Their lines of a help text. */
#define CT_SAMPLING_HELP                                                                           \
    "  --temp T         temperature, 0 is greedy (default: the checkpoint's)\n"                    \
    "  --top-k K        sample among the K best, 0 for all (default: the checkpoint's)\n"          \
    "  --top-p P        sample among the best of total probability P (likewise)\n"                 \
    "  --min-p P        only ids of at least P times the best one's probability (likewise)\n"      \
    "  --typical-p P    only the P most typical, 1 for all (likewise)\n"                           \
    "  --repeat-penalty R      divides what has been said before, 1 is off (likewise)\n"           \
    "  --presence-penalty X    subtracts X from what the answer has said, -2 to 2\n"               \
    "  --frequency-penalty X   subtracts X for each time it has, -2 to 2\n"                        \
    "  --dry-multiplier M      penalises going on with a repetition, 0 is off; --dry-base B\n"     \
    "                          (1.75), --dry-allowed-length N (2), --dry-last-n N (0: all)\n"      \
    "  --min-tokens N   no end before N tokens\n"                                                  \
    "  --ignore-eos     the model's end tokens do not end the answer\n"                            \
    "  --stop TEXT      ends the answer before this text; up to 16 times\n"                        \
    "  --include-stop   the answer keeps the text that ended it\n"                                 \
    "  --seed S         same seed, same answer (default: drawn; --json shows it)\n"

void ct_sampling_args_init(ct_sampling_args *a);
void ct_sampling_args_deinit(ct_sampling_args *a);

/* Completes a->p: from g (borrowed), a seed from the system, the breakers of DRY. */
ct_status ct_sampling_args_complete(ct_sampling_args *a, const ct_generation_config *g,
                                    const ct_tokenizer *t, uint32_t vocab, ct_error *err);

#endif
