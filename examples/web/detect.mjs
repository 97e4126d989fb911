// From a picture to the boxes around its text: what the detector wants, and what its map means (examples/ocr/boxes.c,
// as WebAssembly).
import createBoxes from "./example/boxes.mjs";

const MOST_SIDE = 960;         // pixels; larger pictures are made smaller
const STEP = 32;               // the detector halves its map five times
const MEAN = [0.485, 0.456, 0.406], DEVIATION = [0.229, 0.224, 0.225]; // it was trained so, in BGR

let loading = null;

/** The detector's input for a picture, and what its pixels are in the picture's. */
export function prepare(bitmap) {
  const scale = Math.min(1, MOST_SIDE / Math.max(bitmap.width, bitmap.height));
  const side = (pixels) => Math.max(STEP, Math.round(pixels * scale / STEP) * STEP);
  const width = side(bitmap.width), height = side(bitmap.height);
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0, width, height);
  const { data: pixels } = context.getImageData(0, 0, width, height);
  const count = width * height;
  const data = new Float32Array(3 * count);
  for (let channel = 0; channel < 3; ++channel) {
    const source = 2 - channel; // blue first
    for (let i = 0; i < count; ++i) {
      data[channel * count + i] = (pixels[4 * i + source] / 255 - MEAN[channel]) / DEVIATION[channel];
    }
  }
  return {
    input: { dims: [1, 3, height, width], data },
    xScale: bitmap.width / width,
    yScale: bitmap.height / height,
  };
}

/** The boxes of the detector's map, in the picture's pixels, from the top down: {corners: [{x, y} x 4], score}. */
export async function findBoxes({ dims, data }, { xScale, yScale }) {
  const m = await (loading ??= createBoxes());
  const [, , height, width] = dims;
  const map = m._malloc(4 * data.length), count = m._malloc(4);
  let boxes = 0;
  try {
    if (!map || !count) throw new Error("There is no memory for the map.");
    m.HEAPF32.set(data, map / 4);
    boxes = m._boxes_of(map, width, height, xScale, yScale, count);
    if (!boxes) throw new Error("There is no memory for the boxes.");
    return Array.from({ length: m.HEAPU32[count / 4] }, (_, i) => {
      const numbers = m.HEAPF32.slice(boxes / 4 + 9 * i, boxes / 4 + 9 * i + 9);
      return { corners: [0, 2, 4, 6].map((at) => ({ x: numbers[at], y: numbers[at + 1] })), score: numbers[8] };
    });
  } finally {
    for (const block of [map, count, boxes]) m._free(block);
  }
}
