// Writes ONNX models, and two that are made like real ones: an encoder and a residual network, with seeded weights.
// Browser and Node alike.

const FLOAT = 1, INT64 = 7, FLOAT16 = 10;

// ---- The wire format ----

function varint(value) {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return new Uint8Array(bytes);
}

const utf8 = (text) => new TextEncoder().encode(text);
const sizeOf = (parts) => parts.reduce((sum, part) => sum + part.length, 0);
const number = (field, value) => [varint(field << 3), varint(value)];

// A field of bytes, text, or of the parts that a message is made of.
function bytes(field, content) {
  const parts = Array.isArray(content) ? content : [typeof content === "string" ? utf8(content) : content];
  return [varint((field << 3) | 2), varint(sizeOf(parts)), ...parts];
}

function joined(parts) {
  const out = new Uint8Array(sizeOf(parts));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

// ---- Values ----

// Evenly spread in -1..1, the same each time.
export function uniform(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 0x80000000 - 1;
  };
}

const word = new Uint32Array(1), real = new Float32Array(word.buffer);

// The bits of the float16 that is nearest; ties to even.
export function toHalf(value) {
  real[0] = value;
  const sign = (word[0] >>> 16) & 0x8000, rest = word[0] & 0x7fffffff;
  if (rest > 0x7f800000) return sign | 0x7e00;
  if (rest >= 0x477ff000) return sign | 0x7c00;
  if (rest < 0x38800000) { // subnormal: in units of 2^-24, which Math.round takes to even by hand
    const units = Math.abs(real[0]) * 0x1000000, below = Math.floor(units);
    const isUp = units - below > 0.5 || (units - below === 0.5 && below % 2 === 1);
    return sign | (below + (isUp ? 1 : 0));
  }
  return sign | ((rest - 0x38000000 + 0xfff + ((rest >>> 13) & 1)) >>> 13);
}

export function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (exponent - 25);
}

// ---- Graphs ----

function attribute(name, value) {
  const head = bytes(1, name);
  if (typeof value === "string") return bytes(5, [...head, ...bytes(4, value), ...number(20, 3)]);
  if (Array.isArray(value)) return bytes(5, [...head, ...value.flatMap((v) => number(8, v)), ...number(20, 7)]);
  if (value instanceof Graph) return bytes(5, [...head, ...bytes(6, value.message()), ...number(20, 5)]);
  if (Number.isInteger(value)) return bytes(5, [...head, ...number(3, value), ...number(20, 2)]);
  const float = new Uint8Array(new Float32Array([value.float]).buffer);
  return bytes(5, [...head, varint((2 << 3) | 5), float, ...number(20, 1)]);
}

function valueInfo(field, name, type, dims) {
  const shape = dims.flatMap((dim) => bytes(1, typeof dim === "string" ? bytes(2, dim) : number(1, dim)));
  return bytes(field, [...bytes(1, name), ...bytes(2, bytes(1, [...number(1, type), ...bytes(2, shape)]))]);
}

/** A graph that grows node by node; `isHalf`: its floats are float16. Large weights go to `external`, if it is given
 * ({location, parts}), in place of the model's bytes; names count from `first` on. */
export class Graph {
  constructor({ isHalf = false, seed = 1, external = null, first = 0 } = {}) {
    this.isHalf = isHalf;
    this.random = uniform(seed);
    this.external = external;
    this.parts = [];
    this.count = first;
    this.float = isHalf ? FLOAT16 : FLOAT;
  }

  node(type, inputs, attributes = {}, outputs = null) {
    const made = outputs ?? [`${type}_${++this.count}`];
    this.parts.push(...bytes(1, [
      ...inputs.flatMap((name) => bytes(1, name)), ...made.flatMap((name) => bytes(2, name)), ...bytes(3, made[0]),
      ...bytes(4, type), ...Object.entries(attributes).flatMap(([name, value]) => attribute(name, value))]));
    return made[0];
  }

  constant(type, dims, data) {
    const name = `w${++this.count}`;
    const raw = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const head = [...dims.flatMap((dim) => number(1, dim)), ...number(2, type), ...bytes(8, name)];
    this.parts.push(...bytes(5, [...head, ...(this.external && raw.length > 1024 ? this.outside(raw) : bytes(9, raw))]));
    return name;
  }

  outside(raw) {
    const offset = sizeOf(this.external.parts);
    this.external.parts.push(raw);
    return this.place(this.external.location, offset, raw.length);
  }

  place(location, offset, length) {
    const entry = (key, value) => bytes(13, [...bytes(1, key), ...bytes(2, String(value))]);
    return [...entry("location", location), ...entry("offset", offset), ...entry("length", length), ...number(14, 1)];
  }

  // Floats that lie in a file, which somebody else writes.
  stored(dims, location, offset, length) {
    const name = `w${++this.count}`;
    const head = [...dims.flatMap((dim) => number(1, dim)), ...number(2, FLOAT), ...bytes(8, name)];
    this.parts.push(...bytes(5, [...head, ...this.place(location, offset, length)]));
    return name;
  }

  ints(...values) {
    return this.constant(INT64, [values.length], new BigInt64Array(values.map(BigInt)));
  }

  floats(dims, make) {
    const data = Float32Array.from({ length: dims.reduce((a, b) => a * b, 1) }, make);
    return this.constant(this.float, dims, this.isHalf ? Uint16Array.from(data, toHalf) : data);
  }

  scalar(value) {
    return this.floats([], () => value);
  }

  weight(fan, ...dims) {
    const most = Math.sqrt(3 / fan);
    return this.floats(dims, () => most * this.random());
  }

  input(name, dims, type = this.float) {
    this.parts.push(...valueInfo(11, name, type, dims));
    return name;
  }

  output(name, dims, type = this.float) {
    this.parts.push(...valueInfo(12, name, type, dims));
  }

  message() {
    return [...this.parts, ...bytes(2, "graph")];
  }

  bytes() {
    return joined([...number(1, 8), ...bytes(7, this.message()), ...bytes(8, [...bytes(1, ""), ...number(2, 17)])]);
  }
}

// ---- Models ----

function linear(g, x, inner, outer) {
  return g.node("Add", [g.node("MatMul", [x, g.weight(inner, inner, outer)]), g.floats([outer], () => 0.1 * g.random())]);
}

function norm(g, x, width) {
  const scale = g.floats([width], () => 1 + 0.1 * g.random()), bias = g.floats([width], () => 0.1 * g.random());
  return g.node("LayerNormalization", [x, scale, bias], { epsilon: { float: 1e-5 } });
}

function attention(g, x, width, heads, length) {
  const split = (perm) => g.node("Transpose",
    [g.node("Reshape", [linear(g, x, width, width), g.ints(0, length, heads, width / heads)])], { perm });
  const scores = g.node("MatMul", [split([0, 2, 1, 3]), split([0, 2, 3, 1])]);
  const weights = g.node("Softmax", [g.node("Div", [scores, g.scalar(Math.sqrt(width / heads))])], { axis: -1 });
  const y = g.node("Transpose", [g.node("MatMul", [weights, split([0, 2, 1, 3])])], { perm: [0, 2, 1, 3] });
  return linear(g, g.node("Reshape", [y, g.ints(0, length, width)]), width, width);
}

function gelu(g, x) {
  const erf = g.node("Erf", [g.node("Div", [x, g.scalar(Math.SQRT2)])]);
  return g.node("Mul", [g.node("Mul", [x, g.node("Add", [erf, g.scalar(1)])]), g.scalar(0.5)]);
}

/** A sentence encoder; MiniLM-L6 as it stands. Input "ids" [1, length], output "y". */
export function encoder({ width = 384, heads = 12, layers = 6, words = 2000, length = 128, ...options } = {}) {
  const g = new Graph(options);
  const ids = g.input("ids", [1, length], INT64);
  const table = (rows) => g.floats([rows, width], () => g.random());
  const places = g.node("Gather", [table(length), g.ints(...Array(length).keys())]);
  let x = norm(g, g.node("Add", [g.node("Gather", [table(words), ids]), places]), width);
  for (let i = 0; i < layers; ++i) {
    x = norm(g, g.node("Add", [x, attention(g, x, width, heads, length)]), width);
    x = norm(g, g.node("Add", [x, linear(g, gelu(g, linear(g, x, width, 4 * width)), 4 * width, width)]), width);
  }
  g.node("Identity", [x], {}, ["y"]);
  g.output("y", [1, length, width]);
  return g.bytes();
}

function convolution(g, x, [inputs, outputs, kernel, stride], isLast = false) {
  const pad = kernel >> 1, fan = inputs * kernel * kernel;
  const y = g.node("Conv", [x, g.weight(fan, outputs, inputs, kernel, kernel), g.floats([outputs], () => 0.1 * g.random())],
    { kernel_shape: [kernel, kernel], strides: [stride, stride], pads: [pad, pad, pad, pad] });
  return isLast ? y : g.node("Relu", [y]);
}

/** A residual network; ResNet-50 as it stands. Input "x" [1, 3, side, side], output "y" [1, 1000]. */
export function residual({ width = 64, counts = [3, 4, 6, 3], side = 224, ...options } = {}) {
  const g = new Graph(options);
  let x = convolution(g, g.input("x", [1, 3, side, side]), [3, width, 7, 2]), inputs = width;
  x = g.node("MaxPool", [x], { kernel_shape: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1] });
  counts.forEach((count, stage) => {
    const inner = width << stage, outer = 4 * inner;
    for (let i = 0; i < count; ++i) {
      const stride = i === 0 && stage > 0 ? 2 : 1;
      const shortcut = inputs === outer ? x : convolution(g, x, [inputs, outer, 1, stride], true);
      let y = convolution(g, x, [inputs, inner, 1, 1]);
      y = convolution(g, convolution(g, y, [inner, inner, 3, stride]), [inner, outer, 1, 1], true);
      x = g.node("Relu", [g.node("Add", [g.node("Mul", [y, g.scalar(0.5)]), shortcut])]);
      inputs = outer;
    }
  });
  x = g.node("Flatten", [g.node("GlobalAveragePool", [x])], { axis: 1 });
  g.node("Gemm", [x, g.weight(inputs, inputs, 1000), g.floats([1000], () => 0.1 * g.random())], {}, ["y"]);
  g.output("y", [1, 1000]);
  return g.bytes();
}
