/* Which NVIDIA GPUs this process can use.  Built from device.cu when nvcc is there,
 * from device_none.c otherwise: callers need no #ifdef. */
#ifndef CT_OPS_CUDA_DEVICE_H
#define CT_OPS_CUDA_DEVICE_H

#include <stdbool.h>

#ifdef __cplusplus /* nvcc compiles C++ */
extern "C" {
#endif

bool ct_cuda_built(void);    /* whether this binary holds the CUDA part */
int ct_cuda_n_devices(void); /* 0 without a driver or a device */

#ifdef __cplusplus
}
#endif

#endif
