// From a picture to the boxes around its text: what the detector wants, and what its map means.

const MOST_SIDE = 960;         // pixels; larger pictures are made smaller
const STEP = 32;               // the detector halves its map five times
const MEAN = [0.485, 0.456, 0.406], DEVIATION = [0.229, 0.224, 0.225]; // it was trained so, in BGR
const LEAST_SCORE = 0.3;       // of a pixel that is text
const LEAST_MEAN_SCORE = 0.5;  // of a box
const LEAST_SIDE = 3;          // pixels of the map
const GROWTH = 0.8;            // the map shows the middle of a line: a box grows by this share of its height

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

// The pixels that are text and touch `start`, as a box with their mean score; marks them as seen.
function flood(map, width, height, start, seen) {
  const todo = [start];
  let left = width, right = 0, top = height, bottom = 0, sum = 0, count = 0;
  seen[start] = 1;
  while (todo.length > 0) {
    const at = todo.pop();
    const x = at % width, y = (at - x) / width;
    left = Math.min(left, x);
    right = Math.max(right, x);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y);
    sum += map[at];
    count += 1;
    const neighbours = [x > 0 ? at - 1 : -1, x + 1 < width ? at + 1 : -1,
                        y > 0 ? at - width : -1, y + 1 < height ? at + width : -1];
    for (const next of neighbours) {
      if (next < 0 || seen[next] || map[next] < LEAST_SCORE) continue;
      seen[next] = 1;
      todo.push(next);
    }
  }
  return { left, top, right: right + 1, bottom: bottom + 1, score: sum / count };
}

/** The boxes of the detector's map, in the picture's pixels, from the top down. */
export function findBoxes({ dims, data }, { xScale, yScale }) {
  const [, , height, width] = dims;
  const seen = new Uint8Array(width * height);
  const boxes = [];
  for (let at = 0; at < data.length; ++at) {
    if (seen[at] || data[at] < LEAST_SCORE) continue;
    const box = flood(data, width, height, at, seen);
    const lineHeight = Math.min(box.right - box.left, box.bottom - box.top);
    if (lineHeight < LEAST_SIDE || box.score < LEAST_MEAN_SCORE) continue;
    const margin = lineHeight * GROWTH;
    const x = Math.max(0, box.left - margin), y = Math.max(0, box.top - margin);
    boxes.push({
      x: x * xScale,
      y: y * yScale,
      width: (Math.min(width, box.right + margin) - x) * xScale,
      height: (Math.min(height, box.bottom + margin) - y) * yScale,
      score: box.score,
    });
  }
  return boxes.sort((a, b) => a.y - b.y);
}
