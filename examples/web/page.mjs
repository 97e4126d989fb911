// The page: loads the detector, takes a picture, shows its boxes, the device and the time of each phase.
import { OneModel } from "./package/onemodel.mjs";
import { findBoxes, prepare } from "./detect.mjs";

const get = (id) => document.getElementById(id);
let model = null;

function fail(error) {
  get("problem").textContent = error.code ? `${error.message} (${error.code})` : error.message;
}

async function load() {
  const begin = performance.now();
  model = await OneModel.load("models/ch_PP-OCRv4_det_infer.onnx", {
    progress: ({ loadedBytes, totalBytes }) => {
      get("bar").max = totalBytes || loadedBytes;
      get("bar").value = loadedBytes;
    },
  });
  const { device, fallbackReason } = model.info();
  const seconds = ((performance.now() - begin) / 1e3).toFixed(1);
  get("status").textContent = device
    ? `The model is loaded (${seconds} s). It runs on ${device}.`
    : `The model is loaded (${seconds} s). It runs on the CPU: ${fallbackReason}`;
  get("bar").hidden = true;
  get("file").disabled = false;
}

function draw(bitmap, boxes) {
  const canvas = get("picture");
  canvas.width = bitmap.width;
  canvas.height = bitmap.height;
  canvas.hidden = false;
  const context = canvas.getContext("2d");
  context.drawImage(bitmap, 0, 0);
  context.lineWidth = Math.max(2, bitmap.width / 400);
  context.strokeStyle = "#e02020";
  for (const { corners } of boxes) {
    context.beginPath();
    for (const { x, y } of corners) context.lineTo(x, y);
    context.closePath();
    context.stroke();
  }
}

function tell(facts) {
  get("facts").replaceChildren(...Object.entries(facts).map(([name, value]) => {
    const row = document.createElement("tr");
    for (const text of [name, value]) row.appendChild(document.createElement("td")).textContent = text;
    row.dataset.fact = name;
    return row;
  }));
}

function describe({ nodes, regions }) {
  const count = (place) => nodes.filter((node) => node.place === place).length;
  const onCpu = nodes.filter(({ place }) => place === "cpu");
  const reasons = [...new Set(onCpu.map(({ operator, reason }) => `${operator}: ${reason}`))].slice(0, 3);
  return `${count("device")} operators on the device in ${regions} region${regions === 1 ? "" : "s"}, ` +
    `${onCpu.length} on the CPU${reasons.length ? ` (${reasons.join("; ")})` : ""}`;
}

async function read(file) {
  get("problem").textContent = "";
  get("status").textContent = "Looking …";
  get("file").disabled = true;
  try {
    const times = [performance.now()];
    const bitmap = await createImageBitmap(file);
    const { input, ...scales } = prepare(bitmap);
    times.push(performance.now());
    const [map] = Object.values(await model.run({ [model.inputs[0].name]: input }));
    times.push(performance.now());
    const boxes = await findBoxes(map, scales);
    draw(bitmap, boxes);
    times.push(performance.now());
    const ms = (i) => `${(times[i + 1] - times[i]).toFixed(0)} ms`;
    const placement = await model.diagnose({ [model.inputs[0].name]: input });
    get("status").textContent = `${boxes.length} pieces of text.`;
    tell({
      Picture: `${bitmap.width} x ${bitmap.height}, read and scaled in ${ms(0)}`,
      Detector: `${input.dims.join(" x ")} in ${ms(1)}; the first run of a size also makes its kernels`,
      Boxes: `${boxes.length}, found and drawn in ${ms(2)}`,
      Device: model.info().device ?? "the CPU",
      Placement: describe(placement),
    });
  } catch (error) {
    get("status").textContent = "That did not work.";
    fail(error);
  }
  get("file").disabled = false;
}

const drop = get("drop");
drop.addEventListener("dragover", (event) => {
  event.preventDefault();
  drop.classList.add("over");
});
drop.addEventListener("dragleave", () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => {
  event.preventDefault();
  drop.classList.remove("over");
  const [file] = event.dataTransfer.files;
  if (file && model) read(file);
});
get("file").addEventListener("change", ({ target }) => {
  if (target.files.length > 0) read(target.files[0]);
});
load().catch((error) => {
  get("status").textContent = "The model could not be loaded.";
  fail(error);
});
