/* What the attention kernels' constant FLAGS holds. */
#ifndef OM_ATTENTION_FLAGS_H
#define OM_ATTENTION_FLAGS_H

/* Two bits for each scale (om_scale_kind), then one each. */
#define OM_ATTENTION_Q_SCALE_AT 0
#define OM_ATTENTION_K_SCALE_AT 2
#define OM_ATTENTION_SCALE_AT   4
#define OM_ATTENTION_HAS_MASK   64
#define OM_ATTENTION_ZEROES_NAN 128
#define OM_ATTENTION_HAS_TAIL   256 /* on matrix hardware: keys end within a step */
#define OM_ATTENTION_IS_NARROW  512 /* likewise: depth or width is below the kernel's */
#define OM_ATTENTION_SELECTS    1024 /* a mask takes the place of the score, unless it is 0 */

#endif
