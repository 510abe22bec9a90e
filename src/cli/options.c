#include "cli/options.h"

#include "cli/cli.h"

#include <string.h>

static const ct_option *find_option(const ct_option *options, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(options[i].name, name) || (options[i].alias && !strcmp(options[i].alias, name)))
            return &options[i];
    return NULL;
}

static bool read_choice(const ct_option *o, const char *value)
{
    bool second = !strcmp(value, o->choices[1]);

    if (!second && strcmp(value, o->choices[0]) != 0) {
        ct_cli_usage("%s: '%s' is neither %s nor %s", o->name, value, o->choices[0], o->choices[1]);
        return false;
    }
    *(bool *)o->out = second;
    return true;
}

static bool read_item(const ct_option *o, const char *value)
{
    ct_option_list *list = o->out;

    if (list->n == CT_OPTION_LIST_MAX) {
        ct_cli_usage("%s: given more than %d times", o->name, CT_OPTION_LIST_MAX);
        return false;
    }
    list->item[list->n++] = value;
    return true;
}

static bool read_value(const ct_option *o, const char *value)
{
    uint64_t u;

    switch (o->kind) {
    case CT_OPTION_FLAG:
        break;
    case CT_OPTION_TEXT:
        *(const char **)o->out = value;
        break;
    case CT_OPTION_U32:
        if (!ct_cli_u64(o->name, value, (uint64_t)o->min, (uint64_t)o->max, &u))
            return false;
        *(uint32_t *)o->out = (uint32_t)u;
        break;
    case CT_OPTION_U64:
        return ct_cli_u64(o->name, value, 0, UINT64_MAX, o->out);
    case CT_OPTION_DOUBLE:
        return ct_cli_double(o->name, value, o->min, o->max, o->out);
    case CT_OPTION_LIST:
        return read_item(o, value);
    case CT_OPTION_CHOICE:
        return read_choice(o, value);
    }
    return true;
}

/* Takes argv[*at] and its value; moves *at to the last word taken. */
static bool take_option(const ct_option *options, size_t n, int argc, char **argv, int *at)
{
    const char *name = argv[*at];
    const ct_option *o = find_option(options, n, name);

    if (!o) {
        ct_cli_usage("%s: unknown option '%s'; see carat %s --help", argv[0], name, argv[0]);
        return false;
    }
    if (o->given)
        *o->given = true;
    if (o->kind == CT_OPTION_FLAG) {
        *(bool *)o->out = true;
        return true;
    }
    if (*at + 1 == argc) {
        ct_cli_usage("%s: %s needs a value", argv[0], name);
        return false;
    }
    return read_value(o, argv[++*at]);
}

/* A text option that must be there and is not. */
static const ct_option *find_missing(const ct_option *options, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (options[i].required && !*(const char **)options[i].out)
            return &options[i];
    return NULL;
}

int ct_cli_options(const ct_option *options, size_t n, const char **positional, const char *help,
                   int argc, char **argv)
{
    const ct_option *missing;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            fputs(help, stdout);
            return ct_cli_end();
        }
        /* A lone "-" is a value: standard input. */
        if (positional && !*positional && (argv[i][0] != '-' || !argv[i][1])) {
            *positional = argv[i];
            continue;
        }
        if (!take_option(options, n, argc, argv, &i))
            return CT_EXIT_USAGE;
    }
    missing = find_missing(options, n);
    if (missing)
        return ct_cli_usage("%s: %s is missing; see carat %s --help", argv[0], missing->name,
                            argv[0]);
    return -1;
}
