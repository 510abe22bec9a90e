/* The filters, methods and tests that templates may use, with what they take. */
#ifndef CT_TEXT_JINJA_NAMES_H
#define CT_TEXT_JINJA_NAMES_H

typedef enum jinja_filter {
    FILTER_DEFAULT,
    FILTER_DICTSORT,
    FILTER_FIRST,
    FILTER_ITEMS,
    FILTER_JOIN,
    FILTER_LAST,
    FILTER_LENGTH,
    FILTER_LIST,
    FILTER_LOWER,
    FILTER_MAP, /* of a filter (op) or of an attribute (text) */
    FILTER_REPLACE,
    FILTER_STRING,
    FILTER_TOJSON,
    FILTER_TRIM,
    FILTER_UPPER,
} jinja_filter;

typedef enum jinja_method {
    METHOD_ENDSWITH,
    METHOD_GET,
    METHOD_ITEMS,
    METHOD_KEYS,
    METHOD_LOWER,
    METHOD_LSTRIP,
    METHOD_REPLACE,
    METHOD_RSTRIP,
    METHOD_SPLIT,
    METHOD_STARTSWITH,
    METHOD_STRIP,
    METHOD_UPPER,
    METHOD_VALUES,
} jinja_method;

typedef enum jinja_test {
    TEST_BOOLEAN,
    TEST_DEFINED,
    TEST_EQ,
    TEST_FALSE,
    TEST_FLOAT,
    TEST_IN,
    TEST_INTEGER,
    TEST_ITERABLE,
    TEST_MAPPING,
    TEST_NE,
    TEST_NONE,
    TEST_NUMBER,
    TEST_SEQUENCE,
    TEST_STRING,
    TEST_TRUE,
    TEST_UNDEFINED,
} jinja_test;

typedef enum jinja_function {
    FUNCTION_MACRO,
    FUNCTION_NAMESPACE,
    FUNCTION_RAISE,
    FUNCTION_RANGE,
} jinja_function;

#endif
