/* om_pow of om_exact_math.h as a function, for files that also need om_base.h (whose om_log is a
 * type, and the header's a function). */
#ifndef OM_POOL_POW_H
#define OM_POOL_POW_H

float om_pool_pow(float x, float y);

#endif
