# make            release build of build/release/carat and libcarat.a
# make check      the whole default test suite
# make fuzz       fuzz targets (clang), see fuzz/README.md
# make format     apply .clang-format;  make layers: direction of includes
# SAN=1           AddressSanitizer and UBSan, in build/san
VERSION := 0.1.0
CC      ?= gcc
SAN     ?= 0

ifeq ($(SAN),1)
BUILD    := build/san
OPT      := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
else
BUILD    := build/release
OPT      := -O3 -g
endif

WARN     := -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes \
            -Wvla -Wwrite-strings -Wcast-qual -Wundef -Wimplicit-fallthrough -Werror
CPPFLAGS := -D_GNU_SOURCE -DCT_VERSION='"$(VERSION)"' -Isrc -Iinclude
# No contraction: a*b+c rounds twice on every machine, so results do not depend on -march.
CFLAGS   := -std=c17 $(OPT) $(WARN) -ffp-contract=off
LDLIBS   := -lm -lpthread

LIB_SRC  := $(filter-out src/cli/%,$(shell find src -name '*.c'))
CLI_SRC  := $(wildcard src/cli/*.c)
UNIT_SRC := $(wildcard tests/unit/test_*.c)
LIB_OBJ  := $(LIB_SRC:%.c=$(BUILD)/%.o)
CLI_OBJ  := $(CLI_SRC:%.c=$(BUILD)/%.o)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/unit/%)

all: $(BUILD)/carat

$(BUILD)/libcarat.a: $(LIB_OBJ)
	rm -f $@ && ar rcs $@ $^

$(BUILD)/carat: $(CLI_OBJ) $(BUILD)/libcarat.a
	$(CC) $(CFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/unit/%: tests/unit/%.c $(BUILD)/libcarat.a Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Itests $(CFLAGS) -MMD -MP -o $@ $< $(BUILD)/libcarat.a -lcmocka $(LDLIBS)

units: $(UNIT_BIN)
	@set -e; for t in $^; do $$t; done

format:
	clang-format -i $$(git ls-files '*.c' '*.h' '*.cu' '*.cuh')

clean:
	rm -rf build

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.PHONY: all units format clean
