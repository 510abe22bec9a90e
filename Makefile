# make            build/release/carat, libcarat.a and libcarat.so
# make install    into PREFIX (/usr/local), below DESTDIR
# make check      the whole default test suite (tests/check.sh)
# make units      unit and golden tests of one build;   make fuzz: the fuzz targets (clang)
# make bench      the programs of bench/, which time what docs/SPEED.md says
# make cuda-tests tests and benchmarks that need a GPU, built where nvcc is
# make layers     direction of includes;                make format / format-check
# SAN=1           AddressSanitizer and UBSan, in build/san
# SAN=thread      ThreadSanitizer, in build/tsan;       make tsan: the tests with threads under it
# CUDA=0          leaves the CUDA part out (default: built when nvcc is found)
VERSION := 0.1.0
CC      := gcc
SAN     ?= 0

ifeq ($(SAN),1)
BUILD    := build/san
OPT      := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer \
            -DCT_TEST_SLOW
else ifeq ($(SAN),thread)
BUILD    := build/tsan
# It does not follow fences; where one stands (text/words.h) everything is atomic anyway.
OPT      := -O2 -g -fsanitize=thread -Wno-tsan -DCT_TEST_SLOW
else
BUILD    := build/release
OPT      := -O3 -g
endif

WARN     := -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes \
            -Wvla -Wwrite-strings -Wcast-qual -Wundef -Wimplicit-fallthrough -Werror
CPPFLAGS := -D_GNU_SOURCE -DCT_VERSION='"$(VERSION)"' -Isrc -Iinclude
# No contraction: a*b+c rounds twice on every machine, so results do not depend on -march.
# Of the shared library only what include/carat.h declares is visible.
CFLAGS   := -std=c17 $(OPT) $(WARN) -ffp-contract=off -fPIC -fvisibility=hidden
LDLIBS   := -lm -lpthread

# The sanitizers' shadow memory and the CUDA driver do not agree: SAN builds go without.
CUDA     ?= $(if $(shell command -v nvcc),$(if $(filter 0,$(SAN)),1,0),0)
CUDA_DIR := $(patsubst %/bin/nvcc,%,$(shell command -v nvcc))
ifeq ($(CUDA),1)
CUDA_OBJ := $(patsubst %.cu,$(BUILD)/%.o,$(shell find src -name '*.cu'))
# C++ without its library: gcc links the objects.
NVFLAGS  := -O3 -Isrc -Iinclude -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra \
            -Xcompiler -fno-exceptions,-fno-rtti,-fno-threadsafe-statics \
            -gencode arch=compute_90a,code=sm_90a -gencode arch=compute_80,code=compute_80
LDLIBS   += -L$(CUDA_DIR)/lib64 -lcudart_static -ldl -lrt
endif

LIB_SRC  := $(filter-out src/cli/% $(if $(CUDA_OBJ),src/ops/cuda/device_none.c),\
              $(shell find src -name '*.c'))
CLI_SRC  := $(wildcard src/cli/*.c)
TEST_SRC := $(wildcard tests/unit/test_*.c tests/golden/test_*.c)
FUZZ_SRC := $(wildcard fuzz/fuzz_*.c)
LIB_OBJ  := $(LIB_SRC:%.c=$(BUILD)/%.o)
CLI_OBJ  := $(CLI_SRC:%.c=$(BUILD)/%.o)
BENCH_BIN := $(patsubst %.c,$(BUILD)/%,$(wildcard bench/bench_*.c))
TEST_BIN := $(TEST_SRC:%.c=$(BUILD)/%)
FUZZ_BIN := $(FUZZ_SRC:fuzz/%.c=build/fuzz/%)
SHARED   := $(or $(CARAT_SHARED),../shared)

# The first number changes when a program built against an older header must be rebuilt.
SONAME   := libcarat.so.0

all: $(BUILD)/carat $(BUILD)/$(SONAME)

$(BUILD)/libcarat.a: $(LIB_OBJ) $(CUDA_OBJ)
	rm -f $@ && ar rcs $@ $^

$(BUILD)/$(SONAME): $(LIB_OBJ) $(CUDA_OBJ)
	$(CC) $(CFLAGS) -shared -Wl,-soname,$(SONAME) -Wl,-z,defs -o $@ $^ $(LDLIBS)
	ln -sf $(SONAME) $(BUILD)/libcarat.so

$(BUILD)/carat: $(CLI_OBJ) $(BUILD)/libcarat.a
	$(CC) $(CFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/%.o: %.cu Makefile
	@mkdir -p $(@D)
	nvcc $(NVFLAGS) -MMD -MP -c -o $@ $< 2>$@.log; st=$$?; cat $@.log >&2; exit $$st
	@! grep -E 'C75(10|15|17)' $@.log || { rm -f $@; echo "$<: wgmma is serialised" >&2; exit 1; }

# Tests of memory put themselves between the library and the heap (tests/heap.h).
HEAP_TESTS := $(BUILD)/tests/unit/test_engine_memory $(BUILD)/tests/unit/test_engine_simulation
$(HEAP_TESTS): HEAP := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free

$(BUILD)/tests/%: tests/%.c $(BUILD)/libcarat.a Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Itests $(CFLAGS) -MMD -MP $(HEAP) -o $@ $< $(BUILD)/libcarat.a -lcmocka \
	    $(LDLIBS)

$(BUILD)/bench/%: bench/%.c $(BUILD)/libcarat.a Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -o $@ $< $(BUILD)/libcarat.a $(LDLIBS)
bench: $(BENCH_BIN)

# On a machine with a GPU: run build/release/tests/cuda/test_*, build/release/bench/bench_*.
ifeq ($(CUDA),1)
CUDA_TESTS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/cuda/test_*.c)) $(BUILD)/bench/bench_gemm
cuda-tests: $(CUDA_TESTS)
$(BUILD)/tests/cuda/%: CPPFLAGS += -I$(CUDA_DIR)/include
$(BUILD)/bench/bench_gemm: $(BUILD)/bench/bench_gemm.o $(BUILD)/bench/cublaslt.o $(BUILD)/libcarat.a
	$(CC) $(CFLAGS) -o $@ $^ $(LDLIBS)
.SECONDARY: $(patsubst %.cu,$(BUILD)/%.o,$(wildcard bench/*.cu))
else
cuda-tests:
	@echo "cuda-tests: nvcc is not here (or CUDA=0)"
endif

# The reference tokenizer travels packed; tests read it unpacked.
build/shared/tokenizer.json: $(wildcard $(SHARED)/data/tokenizer/tokenizer.json.xz)
	@mkdir -p $(@D)
	if [ -n "$<" ]; then xz -dc $< >$@.part && mv $@.part $@; fi

# One file a level; the flags keep values, they only let elementwise loops be vectors.
KERNEL_FLAGS := -fno-math-errno -fno-trapping-math
$(BUILD)/src/ops/cpu/kernels_%.o: CFLAGS += $(KERNEL_FLAGS)
ifeq ($(shell uname -m),x86_64)
%/src/ops/cpu/kernels_avx2.o: CFLAGS += -mavx2 -mfma
%/src/ops/cpu/kernels_avx2.o: FUZZFLAGS += -mavx2 -mfma
%/src/ops/cpu/kernels_avx512.o: CFLAGS += -mavx512f
%/src/ops/cpu/kernels_avx512.o: FUZZFLAGS += -mavx512f
endif

tests: $(TEST_BIN) $(BUILD)/carat build/shared/tokenizer.json
# Tests in which threads meet, under ThreadSanitizer.
TSAN_TESTS := test_pool test_engine_threads test_engine test_carat
tsan:
	$(MAKE) SAN=thread $(TSAN_TESTS:%=build/tsan/tests/unit/%)
	@set -e; for t in $(TSAN_TESTS); do build/tsan/tests/unit/$$t; done
units: tests
	@set -e; for t in $(TEST_BIN); do $$t; done

# Sources are compiled into each fuzz build with its instrumentation: one library for all.
FUZZ_OBJ  := $(patsubst %.c,build/fuzz/%.o,$(filter-out src/cli/%,$(shell find src -name '*.c')))
FUZZFLAGS := -std=c17 -O1 -g -fsanitize=fuzzer-no-link,address,undefined \
             -fno-sanitize-recover=all $(WARN) -ffp-contract=off
build/fuzz/src/%.o: src/%.c Makefile
	@mkdir -p $(@D)
	clang $(CPPFLAGS) $(FUZZFLAGS) -MMD -MP -c -o $@ $<
build/fuzz/libcarat.a: $(FUZZ_OBJ)
	rm -f $@ && ar rcs $@ $^
build/fuzz/fuzz_%: fuzz/fuzz_%.c build/fuzz/libcarat.a
	clang $(CPPFLAGS) $(FUZZFLAGS) -fsanitize=fuzzer -o $@ $< build/fuzz/libcarat.a -lm -lpthread
fuzz: $(FUZZ_BIN)

layers:
	sh tools/check_layers.sh

SOURCES = $$(git ls-files '*.c' '*.h' '*.cu' '*.cuh')
format:
	clang-format -i $(SOURCES)
format-check:
	clang-format --dry-run -Werror $(SOURCES)

check: all
	sh tests/check.sh

PREFIX   ?= /usr/local
DEST     = $(DESTDIR)$(PREFIX)
install: all
	install -d $(DEST)/bin $(DEST)/include $(DEST)/lib/pkgconfig
	install $(BUILD)/carat $(DEST)/bin/carat
	install -m 644 include/carat.h $(DEST)/include/carat.h
	install -m 644 $(BUILD)/libcarat.a $(DEST)/lib/libcarat.a
	install $(BUILD)/$(SONAME) $(DEST)/lib/$(SONAME)
	ln -sf $(SONAME) $(DEST)/lib/libcarat.so
	printf '%s\n' 'Name: carat' 'Description: Gemma 4 text models' 'Version: $(VERSION)' \
	    'Cflags: -I$(PREFIX)/include' 'Libs: -L$(PREFIX)/lib -lcarat' \
	    'Libs.private: $(LDLIBS)' >$(DEST)/lib/pkgconfig/carat.pc

clean:
	rm -rf build

-include $(shell find build -name '*.d' 2>/dev/null)
.PHONY: all install bench tests cuda-tests units tsan fuzz layers format format-check check clean
