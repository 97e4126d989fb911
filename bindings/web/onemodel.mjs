// Runs ONNX models in a browser, on WebGPU and on the CPU: the JavaScript side (onemodel.d.ts has the types).
//
// The library is WebAssembly and never waits: a run is begun and polled, and the page goes on between. All
// that is done with one model goes through its queue, so calls take turns.
// By ONNX's numbers: [name, array].
const types = {
  1: ["float32", Float32Array], 2: ["uint8", Uint8Array], 3: ["int8", Int8Array],
  4: ["uint16", Uint16Array], 5: ["int16", Int16Array], 6: ["int32", Int32Array],
  7: ["int64", BigInt64Array], 9: ["bool", Uint8Array], 10: ["float16", Uint16Array],
  11: ["float64", Float64Array], 12: ["uint32", Uint32Array], 13: ["uint64", BigUint64Array],
};
const places = ["cpu", "device", "folded"];
const counters = ["arenaBytes", "weightBytes", "allocations", "dispatches", "kernels", "runs",
                  "hostAllocations", "hostBytes"];

export class OneModelError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "OneModelError";
    this.code = code;
  }
}

let loading = null;
// One WebAssembly instance serves all models of a page; with threads where the page may share memory.
function getModule() {
  const file = globalThis.crossOriginIsolated ? import("./onemodel_wasm_threads.mjs") : import("./onemodel_wasm.mjs");
  return file.then(({ default: createModule }) => createModule());
}

// Bytes, or a response whose body is still to come.
async function open(source) {
  if (source instanceof ArrayBuffer) return { bytes: new Uint8Array(source) };
  if (ArrayBuffer.isView(source)) return { bytes: bytesOf(source) };
  let response = source;
  if (!(source instanceof Response)) {
    try {
      response = await fetch(source);
    } catch (error) {
      throw new OneModelError("OM_E_IO", `${source} could not be loaded: ${error.message}`);
    }
  }
  if (!response.ok) {
    throw new OneModelError("OM_E_IO", `${response.url}: the server answered ${response.status}.`);
  }
  // Of a body that is packed on its way the header counts other bytes.
  const isPacked = response.headers.has("content-encoding");
  return { response, announced: isPacked ? 0 : Number(response.headers.get("content-length") ?? 0) };
}

// The chunks of what was opened, in turn.
async function* chunksOf({ bytes, response }) {
  if (bytes) {
    yield bytes;
    return;
  }
  try {
    for (const reader = response.body.getReader();;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch (error) {
    throw new OneModelError("OM_E_IO", `${response.url || "The download"} broke off: ${error.message}`);
  }
}

// Where the page is hidden a timer may sleep for long; a message never does.
function nextTurn() {
  return new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      channel.port1.close();
      resolve();
    };
    channel.port2.postMessage(0);
  });
}

function typeOf(name, tensor) {
  for (const [number, [dtype, array]] of Object.entries(types)) {
    if (tensor.dtype ? tensor.dtype === dtype : tensor.data instanceof array) return Number(number);
  }
  throw new OneModelError("OM_E_INVALID_INPUT", `Input '${name}' has no known type of elements.`);
}

function bytesOf(data) {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

// Memory of the library, freed together.
class Scratch {
  constructor(module) {
    this.module = module;
    this.pointers = [];
  }
  alloc(bytes) {
    const pointer = this.module._malloc(Math.max(bytes, 1)) >>> 0;
    if (pointer === 0) {
      throw new OneModelError("OM_E_OUT_OF_MEMORY", `There is no room for ${bytes} bytes in the page's memory.`);
    }
    this.pointers.push(pointer);
    return pointer;
  }
  text(string) {
    const bytes = this.module.lengthBytesUTF8(string) + 1;
    const pointer = this.alloc(bytes);
    this.module.stringToUTF8(string, pointer, bytes);
    return pointer;
  }
  copy(data) {
    const pointer = this.alloc(data.length);
    this.module.HEAPU8.set(data, pointer);
    return pointer;
  }
  // What was opened, chunk by chunk into its place; where nobody said how long it is, when all of it is there.
  async receive(opened, count) {
    const announced = opened.bytes?.length ?? opened.announced;
    const parts = [];
    let at = announced > 0 ? this.alloc(announced) : 0, size = 0;
    for await (const chunk of chunksOf(opened)) {
      if (announced > 0 && size + chunk.length > announced) {
        throw new OneModelError("OM_E_IO", `${opened.response.url} is longer than the ${announced} bytes it announced.`);
      }
      if (announced > 0) this.module.HEAPU8.set(chunk, at + size);
      else parts.push(chunk);
      size += chunk.length;
      count(chunk.length);
    }
    if (announced > 0 && size !== announced) {
      throw new OneModelError("OM_E_IO", `${opened.response.url} ended after ${size} of ${announced} bytes.`);
    }
    if (announced > 0) return { at, size };
    at = this.alloc(size);
    let offset = at;
    for (const part of parts) {
      this.module.HEAPU8.set(part, offset);
      offset += part.length;
    }
    return { at, size };
  }
  free() {
    for (const pointer of this.pointers) this.module._free(pointer);
    this.pointers = [];
  }
}

export class OneModel {
  #module;
  #memory; // the model's bytes and the error: until dispose
  #error;
  #model = 0;
  #session = 0;
  #fallbackReason = null;
  #queue = Promise.resolve();

  static async load(source, options = {}) {
    const one = new OneModel();
    const names = Object.keys(options.externalData ?? {});
    const [module, ...opened] = await Promise.all(
      [(loading ??= getModule()), ...[source, ...names.map((name) => options.externalData[name])].map(open)]);
    one.#module = module;
    one.#memory = new Scratch(module);
    one.#error = module._om_web_error_new();
    const preparing = one.#prepareDevice(options); // beside the download
    preparing.catch(() => {}); // what went wrong is told when it is wanted
    try {
      await one.#readModel(names, opened, options.progress);
      one.#makeSession(await preparing, options);
      return one;
    } catch (error) {
      await preparing.catch(() => {}); // it may still be under way
      one.#free();
      throw error;
    } finally {
      module._om_web_prepared_destroy(await preparing.catch(() => 0));
    }
  }

  async #readModel(names, opened, progress) {
    const m = this.#module;
    const totals = opened.map(({ bytes, announced }) => bytes?.length ?? announced);
    const totalBytes = totals.every((total) => total > 0) ? totals.reduce((a, b) => a + b, 0) : 0;
    let loadedBytes = 0;
    const blocks = [];
    for (const file of opened) {
      blocks.push(await this.#memory.receive(file, (bytes) => {
        loadedBytes += bytes;
        progress?.({ loadedBytes, totalBytes });
      }));
    }
    const [model, ...files] = blocks;
    const list = this.#memory.alloc(12 * files.length); // om_model_file: three words each
    files.forEach(({ at, size }, i) => m.HEAPU32.set([this.#memory.text(names[i]), at, size], list / 4 + 3 * i));
    this.#model = m._om_web_model_load(model.at, model.size, list, files.length, this.#error);
    if (!this.#model) this.#fail();
    this.inputs = this.#describe(false);
    this.outputs = this.#describe(true);
  }

  #makeSession(prepared, { mode, requireGpu }) {
    this.#session = this.#module._om_web_session_create(
      this.#model, prepared, Boolean(requireGpu), mode === "exact", this.#error);
    if (!this.#session) this.#fail();
  }

  // A device that is ready for a session; 0: the CPU alone.
  async #prepareDevice({ device = "auto", mode, requireGpu, gpu, profile }) {
    const m = this.#module, isExact = mode === "exact";
    if (device === "cpu" && !requireGpu) return 0;
    let prepared = 0;
    try {
      await m.onemodelPrepareDevice({ gpu });
      prepared = m._om_web_prepare(isExact, Boolean(profile), this.#error);
      if (!prepared) this.#fail();
      for (let state; (state = m._om_web_prepare_poll(prepared, this.#error)) !== 1;) {
        if (state < 0) this.#fail();
        await nextTurn();
      }
      return prepared;
    } catch (error) {
      m._om_web_prepared_destroy(prepared);
      if (device === "gpu" || requireGpu) {
        throw error instanceof OneModelError ? error : new OneModelError("OM_E_UNSUPPORTED", error.message);
      }
      this.#fallbackReason = error.message;
      return 0;
    }
  }

  #text(pointer) {
    return this.#module.UTF8ToString(pointer);
  }

  #fail() {
    const code = this.#text(this.#module._om_web_error_code(this.#error));
    throw new OneModelError(code, this.#text(this.#module._om_web_error_message(this.#error)));
  }

  #describe(isOutput) {
    const m = this.#module;
    return Array.from({ length: m._om_web_value_count(this.#model, isOutput) }, (_, i) => {
      const rank = m._om_web_value_rank(this.#model, isOutput, i);
      const dim = (_, d) => m._om_web_value_dim(this.#model, isOutput, i, d);
      return {
        name: this.#text(m._om_web_value_name(this.#model, isOutput, i)),
        dtype: this.#text(m._om_web_value_dtype(this.#model, isOutput, i)),
        dims: rank < 0 ? null : Array.from({ length: rank }, dim),
      };
    });
  }

  // The run's arguments in the library's memory.
  #prepare(scratch, inputs, outputs) {
    const m = this.#module;
    const list = Object.entries(inputs);
    const run = m._om_web_run_new(this.#session, list.length, outputs.length);
    if (!run) throw new OneModelError("OM_E_OUT_OF_MEMORY", "There is no room for a run in the page's memory.");
    list.forEach(([name, tensor], i) => {
      const type = typeOf(name, tensor);
      const dims = scratch.alloc(8 * tensor.dims.length);
      m.HEAPF64.set(tensor.dims, dims / 8);
      const data = tensor.data ? this.#copyInput(scratch, name, tensor, type) : 0;
      m._om_web_run_set_input(run, i, scratch.text(name), type, tensor.dims.length, dims, data);
    });
    outputs.forEach((name, i) => m._om_web_run_set_output(run, i, scratch.text(name)));
    return run;
  }

  #copyInput(scratch, name, tensor, type) {
    const elements = tensor.dims.reduce((a, b) => a * b, 1);
    const needed = elements * types[type][1].BYTES_PER_ELEMENT;
    if (tensor.data.byteLength === needed) return scratch.copy(bytesOf(tensor.data));
    throw new OneModelError("OM_E_INVALID_INPUT",
      `Input '${name}' has ${tensor.data.byteLength} bytes, but its shape [${tensor.dims}] needs ${needed}.`);
  }

  // Runs `work` when everything asked for before it is done.
  #inTurn(work) {
    const turn = this.#queue.then(() => {
      if (!this.#session) throw new OneModelError("OM_E_INVALID_ARGUMENT", "The model has been disposed of.");
      return work();
    });
    this.#queue = turn.catch(() => {});
    return turn;
  }

  run(inputs, outputs = this.outputs.map(({ name }) => name)) {
    return this.#inTurn(async () => {
      const m = this.#module;
      const scratch = new Scratch(m);
      let run = 0;
      try {
        run = this.#prepare(scratch, inputs, outputs);
        if (!m._om_web_run_begin(run, this.#error)) this.#fail();
        while (!m._om_web_run_is_done(run)) await nextTurn();
        if (!m._om_web_run_finish(run, this.#error)) this.#fail();
        return Object.fromEntries(outputs.map((name, i) => [name, this.#take(run, i)]));
      } finally {
        m._om_web_run_destroy(run);
        scratch.free();
      }
    });
  }

  #take(run, i) {
    const m = this.#module;
    const [dtype, array] = types[m._om_web_output_dtype(run, i)] ?? [];
    if (!array) throw new OneModelError("OM_E_UNSUPPORTED", `Output ${i} has elements that JavaScript has no array for.`);
    const at = m._om_web_output_data(run, i) >>> 0;
    const bytes = m.HEAPU8.slice(at, at + m._om_web_output_bytes(run, i));
    const dim = (_, d) => m._om_web_output_dim(run, i, d);
    const dims = Array.from({ length: m._om_web_output_rank(run, i) }, dim);
    return { dtype, dims, data: new array(bytes.buffer) };
  }

  diagnose(inputs) {
    return this.#inTurn(() => {
      const m = this.#module;
      const scratch = new Scratch(m);
      let run = 0;
      try {
        run = this.#prepare(scratch, inputs, []);
        const found = m._om_web_diagnose(run, this.#error);
        if (!found) this.#fail();
        const node = (_, i) => {
          const region = m._om_web_node_region(found, i);
          return {
            name: this.#text(m._om_web_node_name(found, i)),
            operator: this.#text(m._om_web_node_type(found, i)),
            place: places[m._om_web_node_place(found, i)],
            region: region < 0 ? null : region,
            reason: this.#text(m._om_web_node_reason(found, i)),
          };
        };
        const length = m._om_web_node_count(found);
        return { nodes: Array.from({ length }, node), regions: m._om_web_region_count(found) };
      } finally {
        m._om_web_run_destroy(run);
        scratch.free();
      }
    });
  }

  /** Device time of the last run's steps; none without `profile: true`, or where the device has no clock. */
  stepTimes() {
    return this.#inTurn(() => {
      const m = this.#module;
      return Array.from({ length: m._om_web_step_count(this.#session) }, (_, i) => ({
        name: this.#text(m._om_web_step_node(this.#session, i)),
        operator: this.#text(m._om_web_step_type(this.#session, i)),
        dispatches: m._om_web_step_dispatches(this.#session, i),
        ms: m._om_web_step_ms(this.#session, i),
      }));
    });
  }

  info() {
    const m = this.#module;
    const scratch = new Scratch(m);
    const name = scratch.alloc(256);
    m._om_web_device_name(this.#session, name, 256);
    const info = {
      device: this.#text(name) || null, fallbackReason: this.#fallbackReason, threads: m._om_web_thread_count(),
    };
    counters.forEach((counter, i) => { info[counter] = m._om_web_counter(this.#session, i); });
    scratch.free();
    return info;
  }

  dispose() {
    return this.#inTurn(() => this.#free());
  }

  #free() {
    const m = this.#module;
    if (this.#session) m._om_web_session_destroy(this.#session);
    if (this.#model) m._om_web_model_destroy(this.#model);
    if (this.#error) m._free(this.#error);
    this.#session = this.#model = this.#error = 0;
    this.#memory?.free();
  }
}
