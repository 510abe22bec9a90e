#include "ops/cuda/device.h"

bool ct_cuda_built(void)
{
    return true;
}

int ct_cuda_n_devices(void)
{
    int n = 0;

    return cudaGetDeviceCount(&n) == cudaSuccess ? n : 0;
}
