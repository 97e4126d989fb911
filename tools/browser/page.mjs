// One model in one engine, as the address says: ?engine=webgpu&model=name.onnx&runs=5. The result, or what went
// wrong, is window.result. All times are from the page's own start.
const query = Object.fromEntries(new URLSearchParams(location.search));
const { inputs, exact } = await (await fetch(`/work/${query.model}.json`)).json();

const arrays = { float32: Float32Array, int64: BigInt64Array };
async function tensors() {
  const list = Object.entries(inputs).map(async ([name, { dtype, dims, file }]) => {
    const data = new arrays[dtype](await (await fetch(`/work/${file}`)).arrayBuffer());
    return [name, { dtype, dims, data }];
  });
  return Object.fromEntries(await Promise.all(list));
}

async function onemodel() {
  const { OneModel } = await import("/package/onemodel.mjs");
  const isGpu = query.engine === "webgpu";
  const load = (options) => OneModel.load(`/models/${query.model}.onnx`, options);
  const model = await load({ device: isGpu ? "gpu" : "cpu" });
  return {
    run: async (feeds) => Object.values(await model.run(feeds))[0].data,
    about: async (feeds) => {
      const { nodes, regions } = await model.diagnose(feeds);
      const count = (place) => nodes.filter((node) => node.place === place).length;
      const info = model.info();
      let required = "not asked";
      if (isGpu) {
        required = "kept";
        try {
          const strict = await load({ requireGpu: true });
          await strict.diagnose(feeds);
          await strict.dispose();
        } catch (error) {
          required = error.message;
        }
      }
      return { device: info.device, onDevice: count("device"), onCpu: count("cpu"), regions, required };
    },
  };
}

async function onnxruntime() {
  const isGpu = query.engine === "ort-webgpu";
  const ort = await import(isGpu ? "/ort/ort.webgpu.min.mjs" : "/ort/ort.wasm.min.mjs");
  ort.env.wasm.wasmPaths = `${location.origin}/ort/`;
  const session = await ort.InferenceSession.create(`/models/${query.model}.onnx`,
    { executionProviders: [isGpu ? "webgpu" : "wasm"] });
  const wrap = (feeds) => Object.fromEntries(Object.entries(feeds).map(([name, { dtype, dims, data }]) =>
    [name, new ort.Tensor(dtype, data, dims)]));
  return {
    run: async (feeds) => (await session.run(wrap(feeds)))[session.outputNames[0]].data,
    about: async () => ({}),
  };
}

function scaledError(a, b) {
  let worst = 0, most = 0;
  for (let i = 0; i < b.length; ++i) {
    worst = Math.max(worst, Math.abs(a[i] - b[i]));
    most = Math.max(most, Math.abs(b[i]));
  }
  return a.length === b.length ? worst / most : NaN;
}

async function measure() {
  const engine = await (query.engine.startsWith("ort") ? onnxruntime() : onemodel());
  const feeds = await tensors();
  const loaded = performance.now();
  const first = Float32Array.from(await engine.run(feeds));
  const firstResult = performance.now();
  await engine.run(feeds);
  const times = [];
  let repeats = true;
  for (let i = 0; i < Number(query.runs); ++i) {
    const begin = performance.now();
    const y = await engine.run(feeds);
    times.push(performance.now() - begin);
    repeats &&= y.every((value, at) => Object.is(value, first[at]));
  }
  times.sort((a, b) => a - b);
  const wanted = new Float32Array(await (await fetch(`/work/${exact}`)).arrayBuffer());
  return {
    loaded, firstResult, warm: times[times.length >> 1], least: times[0], most: times.at(-1), repeats,
    error: scaledError(first, wanted), ...(await engine.about(feeds)),
  };
}

window.result = await measure().catch((error) => ({ problem: error.message || String(error) }));
