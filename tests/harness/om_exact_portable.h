/* The shaders' division and square root, as C: om_exact_math.h read with OM_EXACT_PORTABLE. */
#ifndef OM_EXACT_PORTABLE_H
#define OM_EXACT_PORTABLE_H

float om_portable_div(float a, float b);

/* By om_div_by, with a divisor made of b. */
float om_portable_div_by(float a, float b);
float om_portable_sqrt(float x);

#endif
