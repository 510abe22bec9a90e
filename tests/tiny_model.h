/* A Gemma 4 so small that thousands of requests are a matter of seconds: written with
 * random weights to maker_dir. */
#ifndef CT_TESTS_TINY_MODEL_H
#define CT_TESTS_TINY_MODEL_H

#include "gemma_maker.h"

#include "base/num.h"

#define TINY_VOCAB  64
#define TINY_WINDOW 8
#define TINY_MAX    512

static const char tiny_config[] =
    "{\"architectures\":[\"Gemma4ForCausalLM\"],\"model_type\":\"gemma4_text\","
    "\"vocab_size\":64,\"hidden_size\":16,\"intermediate_size\":16,\"num_hidden_layers\":6,"
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":8,\"sliding_window\":8,"
    "\"max_position_embeddings\":512,\"rms_norm_eps\":1e-06,\"final_logit_softcapping\":30.0,"
    "\"attention_k_eq_v\":true,\"hidden_size_per_layer_input\":0,"
    "\"per_layer_config\":{\"5\":{\"head_dim\":16,\"num_key_value_heads\":1}}}";

/* Numerical Recipes' generator: enough for weights and lengths. */
static inline uint32_t tiny_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* Uniform in [-1, 1). */
static inline float tiny_uniform(uint64_t *state)
{
    return (float)tiny_random(state) / 1073741824.0f - 1.0f;
}

/* Norms and scalars near 1, matrices near 0, in bf16. */
static inline void tiny_fill(const maker *m, ct_buf *out)
{
    uint64_t state = 7;

    for (size_t i = 0; i < m->n; i++) {
        const made_tensor *t = &m->t[i];
        bool near_one = t->n_dims == 1;

        for (uint64_t k = 0; k < made_bytes(t) / 2; k++) {
            float x = tiny_uniform(&state);
            uint16_t bits = ct_f32_bf16(near_one ? 1 + 0.2f * x : 0.7f * x);

            ct_buf_add(out, &bits, sizeof bits);
        }
    }
}

static inline void tiny_write(void)
{
    const gemma g = {.prefix = "model.",
                     .V = TINY_VOCAB,
                     .H = 16,
                     .I = 16,
                     .L = 6,
                     .heads = 2,
                     .kv_sliding = 1,
                     .kv_global = 1,
                     .hd_sliding = 8,
                     .hd_global = 16};
    uint64_t n_f32 = 0;
    maker m = {0};
    ct_buf out;
    FILE *f;

    gemma_make(&m, &g);
    maker_header(&m, &out, &n_f32);
    tiny_fill(&m, &out);
    assert_false(out.failed);
    f = fopen(maker_path("model.safetensors"), "w");
    assert_non_null(f);
    assert_int_equal(fwrite(out.p, 1, out.n, f), out.n);
    assert_int_equal(fclose(f), 0);
    maker_write_text(maker_path("config.json"), tiny_config);
    maker_write_text(maker_path("generation_config.json"), "{\"eos_token_id\":[1]}");
    ct_buf_deinit(&out);
    maker_deinit(&m);
}

#endif
