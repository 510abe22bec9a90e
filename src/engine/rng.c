/* Random numbers of (seed, position): nothing is drawn in sequence, so a request's tokens do
 * not depend on what is computed beside it. */
#include "engine/sampler.h"

#define GOLDEN 0x9e3779b97f4a7c15u /* 2^64 over the golden ratio */

/* Finalizer of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
 * generators", 2014): every input bit reaches every output bit. */
static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

double ct_sampler_uniform(uint64_t seed, uint64_t position)
{
    uint64_t z = mix(mix(seed + GOLDEN) + position * GOLDEN);

    return (double)(z >> 11) * 0x1p-53;
}

uint64_t ct_sampling_choice_seed(uint64_t seed, uint32_t choice)
{
    /* Twice mixed, and away from the arguments of ct_sampler_uniform: no choice repeats
     * the numbers of another at shifted positions. */
    return choice ? mix(mix(seed ^ GOLDEN) + ((uint64_t)choice << 32)) : seed;
}
