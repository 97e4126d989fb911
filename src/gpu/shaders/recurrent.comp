// All steps of an LSTM, GRU or RNN. A workgroup takes one item of the batch in one direction through
// its steps: the states lie in shared memory, an invocation has every 256th element of them, and at
// each step makes the four gates of each (x W is there: recurrent_inputs.comp). R lies as W does.
//
// A GRU whose reset gate comes before its product has two products a step.
//
//! kernel recurrent        OM_EXACT=0
//! kernel recurrent_exact  OM_EXACT=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/recurrent_params.h"
#include "common/recurrent.glsl"

#define GROUP 256
#define MOST_HIDDEN 1024   // 12 KiB for three states
layout(local_size_x = GROUP) in;

OM_CONSTANT(0, KIND, 0)         // om_recurrent_kind
OM_CONSTANT(1, FLAGS, 0)
OM_CONSTANT(2, ACTIVATIONS, 0)  // of six, four bits each

const uint RNN = 0u;
const uint GRU = 1u;
const uint LSTM = 2u;

layout(set = 0, binding = 0, std430) readonly buffer Inputs { vec4 inputs[]; };  // x W
layout(set = 0, binding = 1, std430) readonly buffer R { vec4 r_data[]; };
// For each element of each direction: W's biases, R's, peepholes of i, o and f; then the lengths.
layout(set = 0, binding = 2, std430) readonly buffer Vectors { vec4 vectors[]; };
layout(set = 0, binding = 3, std430) readonly buffer FirstH { float first_h[]; };
layout(set = 0, binding = 4, std430) readonly buffer FirstC { float first_c[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Y { float y_data[]; };
layout(set = 0, binding = 6, std430) writeonly buffer LastH { float last_h[]; };
layout(set = 0, binding = 7, std430) writeonly buffer LastC { float last_c[]; };

shared float h_now[MOST_HIDDEN];
shared float h_next[MOST_HIDDEN];  // or a GRU's update gate
shared float c_now[MOST_HIDDEN];   // or a GRU's reset state

float add(float a, float b) {
  OM_PRECISE float sum = a + b;
  return sum;
}

float multiply(float a, float b) {
  OM_PRECISE float product = a * b;
  return product;
}

float complement(float x) {
  OM_PRECISE float rest = 1.0 - x;
  return rest;
}

float alpha_of(uint index) {
  switch (index) {
    case 0u: return P.alpha_0;
    case 1u: return P.alpha_1;
    case 2u: return P.alpha_2;
    case 3u: return P.alpha_3;
    case 4u: return P.alpha_4;
    default: return P.alpha_5;
  }
}

float beta_of(uint index) {
  switch (index) {
    case 0u: return P.beta_0;
    case 1u: return P.beta_1;
    case 2u: return P.beta_2;
    case 3u: return P.beta_3;
    case 4u: return P.beta_4;
    default: return P.beta_5;
  }
}

// The expressions are those of ops/elementwise.def.
float activate(uint index, uint flags, uint functions, float x) {
  float alpha = alpha_of(index);
  float beta = beta_of(index);
  if ((flags & OM_RECURRENT_CLIPS) != 0u) x = om_min(om_max(x, -P.clip), P.clip);
  switch (functions >> (index * 4u) & 15u) {
    case OM_ACTIVATION_SIGMOID: return om_sigmoid(x);
    case OM_ACTIVATION_TANH: return om_tanh(x);
    case OM_ACTIVATION_RELU: return om_max(x, 0.0);
    case OM_ACTIVATION_SOFTSIGN: return om_div(x, add(1.0, om_abs(x)));
    case OM_ACTIVATION_SOFTPLUS: return om_softplus(x);
    case OM_ACTIVATION_LEAKY_RELU: return x < 0.0 ? multiply(x, alpha) : om_ftz(x);
    case OM_ACTIVATION_THRESHOLDED_RELU: return x > alpha || om_is_nan(x) ? om_ftz(x) : 0.0;
    case OM_ACTIVATION_ELU: return x < 0.0 ? multiply(alpha, om_expm1(x)) : om_ftz(x);
    case OM_ACTIVATION_HARD_SIGMOID: return om_max(0.0, om_min(1.0, om_mul_add(x, alpha, beta)));
    case OM_ACTIVATION_AFFINE:
      if (alpha != 1.0) x = multiply(x, alpha);
      if (beta != 0.0) x = add(x, beta);
      return x;
    default:
      if (beta != 1.0) x = multiply(x, beta);
      x = om_tanh(x);
      if (alpha != 1.0) x = multiply(x, alpha);
      return x;
  }
}

// (x W + h R) + (both biases)
vec4 join(vec4 from_inputs, vec4 from_state, uint place, uint flags) {
  OM_PRECISE vec4 gates = from_inputs + from_state;
  if ((flags & OM_RECURRENT_HAS_BIAS) != 0u) {
    OM_PRECISE vec4 bias = vectors[place * 3u] + vectors[place * 3u + 1u];
    gates = gates + bias;
  }
  return gates;
}

// Gates i o f c; the new h, and the new c in its place.
float lstm_state(vec4 gates, uint j, uint place, uint of, uint flags, uint functions) {
  float c = c_now[j];
  bool peeps = (flags & OM_RECURRENT_HAS_PEEPHOLES) != 0u;
  vec4 peepholes = vectors[place * 3u + 2u];
  if (peeps) gates.x = add(gates.x, multiply(peepholes.x, c));
  float i = activate(of, flags, functions, gates.x);
  float f = complement(i);
  if ((flags & OM_RECURRENT_COUPLES) == 0u) {
    if (peeps) gates.z = add(gates.z, multiply(peepholes.z, c));
    f = activate(of, flags, functions, gates.z);
  }
  float g = activate(of + 1u, flags, functions, gates.w);
  c = add(multiply(f, c), multiply(i, g));
  if (peeps) gates.y = add(gates.y, multiply(peepholes.y, c));
  float o = activate(of, flags, functions, gates.y);
  c_now[j] = c;
  return multiply(o, activate(of + 2u, flags, functions, c));
}

// The candidate from what joins its x W, and the new h.
float gru_state(float joined, float update, float h, uint of, uint flags, uint functions) {
  float candidate = activate(of + 1u, flags, functions, joined);
  return add(multiply(complement(update), candidate), multiply(update, h));
}

void main() {
  uint kind = KIND;
  uint flags = FLAGS;
  uint functions = ACTIVATIONS;
  uint lane = gl_LocalInvocationID.x;
  uint group_index = om_group_index();
  bool is_there = group_index < P.groups;
  uint d = group_index / P.batch % P.directions;
  uint item = group_index % P.batch;
  uint of = d * 3u;  // its activations
  uint hidden = P.hidden;
  uint state = item * P.state_batch + d * P.direction;
  bool is_reverse = d > 0u || (flags & OM_RECURRENT_IS_REVERSE) != 0u;
  bool resets_after = (flags & OM_RECURRENT_RESETS_AFTER) != 0u;
  bool has_bias = (flags & OM_RECURRENT_HAS_BIAS) != 0u;
  bool is_late = kind == GRU && !resets_after;
  uint rows = P.steps * P.batch;
  uint own_steps = P.steps;
  if ((flags & OM_RECURRENT_HAS_LENGTHS) != 0u) {
    own_steps = min(uint(vectors[P.directions * hidden * 3u + item].x), P.steps);
  }
  for (uint j = lane; j < hidden; j += uint(GROUP)) {
    h_now[j] = (flags & OM_RECURRENT_HAS_H) != 0u ? first_h[state + j] : 0.0;
    c_now[j] = (flags & OM_RECURRENT_HAS_C) != 0u ? first_c[state + j] : 0.0;
  }
  for (uint time = 0u; time < P.steps; ++time) {
    bool is_on = is_there && time < own_steps;
    uint position = is_reverse && is_on ? own_steps - 1u - time : time;
    uint row = position * P.row_step + item * P.row_batch;
    uint r_begin = d * hidden * hidden;
    barrier();
    for (uint j = lane; j < hidden; j += uint(GROUP)) {
      if (is_on) {
        uint place = d * hidden + j;
        RECURRENT_PRODUCT(product, hidden, h_now[term], r_data[r_begin + term * hidden + j])
        vec4 from_inputs = inputs[(d * rows + row) * hidden + j];
        vec4 gates = join(from_inputs, product, place, flags);
        if (kind == LSTM) {
          h_next[j] = lstm_state(gates, j, place, of, flags, functions);
        } else if (kind == RNN) {
          h_next[j] = activate(of, flags, functions, gates.x);
        } else {
          float update = activate(of, flags, functions, gates.x);
          float reset = activate(of, flags, functions, gates.y);
          if (is_late) {
            h_next[j] = update;
            c_now[j] = multiply(reset, h_now[j]);
          } else {
            float u = product.z;
            if (has_bias) u = add(u, vectors[place * 3u + 1u].z);
            u = add(from_inputs.z, multiply(reset, u));
            if (has_bias) u = add(u, vectors[place * 3u].z);
            h_next[j] = gru_state(u, update, h_now[j], of, flags, functions);
          }
        }
      }
    }
    barrier();
    for (uint j = lane; j < hidden; j += uint(GROUP)) {
      if (is_on && is_late) {
        uint place = d * hidden + j;
        RECURRENT_PRODUCT(product, hidden, c_now[term], r_data[r_begin + term * hidden + j])
        vec4 from_inputs = inputs[(d * rows + row) * hidden + j];
        vec4 gates = join(from_inputs, product, place, flags);
        h_now[j] = gru_state(gates.z, h_next[j], h_now[j], of, flags, functions);
      } else if (is_on) {
        h_now[j] = h_next[j];
      }
      if (is_there && (flags & OM_RECURRENT_WRITES_Y) != 0u) {
        uint at = position * P.y_step + item * P.y_batch + d * P.direction + j;
        y_data[at] = is_on ? h_now[j] : 0.0;
      }
    }
  }
  for (uint j = lane; j < hidden; j += uint(GROUP)) {
    if (is_there && (flags & OM_RECURRENT_WRITES_H) != 0u) last_h[state + j] = h_now[j];
    if (is_there && (flags & OM_RECURRENT_WRITES_C) != 0u) last_c[state + j] = c_now[j];
  }
}
