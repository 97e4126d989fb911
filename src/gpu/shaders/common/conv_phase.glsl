// The phases of a transposed convolution along one axis: results whose positions have the same
// remainder by the stride take the same taps of the kernel.
#ifndef OM_CONV_PHASE_GLSL
#define OM_CONV_PHASE_GLSL

// The first tap of the phase that falls on an input element; `kernel` where none does. The others
// follow kernel_step apart. Sums are kept positive by whole strides.
uint phase_first(uint phase, uint kernel, uint stride, uint pad, uint dilation, uint kernel_step) {
  uint shift = kernel * dilation * stride;
  for (uint k = 0u; k < kernel_step && k < kernel; ++k) {
    if ((phase + pad + shift - k * dilation) % stride == 0u) return k;
  }
  return kernel;
}

#endif
