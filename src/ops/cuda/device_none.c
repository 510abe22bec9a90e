#include "ops/cuda/device.h"

bool ct_cuda_built(void)
{
    return false;
}

int ct_cuda_n_devices(void)
{
    return 0;
}
