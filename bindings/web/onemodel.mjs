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

// Bytes, a blob, or a response whose body is still to come.
async function open(source) {
  if (source instanceof Blob) return { blob: source };
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

// The chunks of what was opened, in turn; as many as it said there would be.
async function* chunksOf({ bytes, blob, response, announced }) {
  if (bytes) {
    yield bytes;
    return;
  }
  const name = response?.url || "The download";
  let size = 0;
  const body = blob?.stream() ?? response.body;
  for (const reader = body.getReader();;) {
    const { done, value } = await reader.read().catch((error) => {
      throw new OneModelError("OM_E_IO", `${name} broke off: ${error.message}`);
    });
    if (done) break;
    size += value.length;
    if (announced > 0 && size > announced) {
      throw new OneModelError("OM_E_IO", `${name} is longer than the ${announced} bytes it announced.`);
    }
    yield value;
  }
  if (announced > 0 && size !== announced) {
    throw new OneModelError("OM_E_IO", `${name} ended after ${size} of ${announced} bytes.`);
  }
}

const pieceBytes = 16 << 20; // of a download, handed to the browser, which may keep it on disk
const aheadBytes = 64 << 20; // of stored data read ahead of the library, outside of its memory

// A model's external data, outside of the library's memory: bytes of the page, or blobs. The library is told at once
// whether a range is there. What is not is read from its blob while the page goes on, and the library asked again.
class Reader {
  #files = new Map(); // by location: bytes or a blob
  #pieces = new Map(); // what was read of blobs, by range: {location, offset, bytes, isWanted}
  #wanted = new Map(); // what was asked for and was not there, in that order
  #last = null; // the piece last read from

  async receive(location, opened, count) {
    if (opened.bytes || opened.blob) {
      count(sizeOf(opened));
      this.#files.set(location, opened.bytes ?? opened.blob);
      return;
    }
    const pieces = [];
    let parts = [], size = 0;
    const keep = () => {
      pieces.push(new Blob(parts));
      parts = [];
      size = 0;
    };
    for await (const chunk of chunksOf(opened)) {
      parts.push(chunk);
      size += chunk.length;
      count(chunk.length);
      if (size >= pieceBytes) keep();
    }
    keep();
    this.#files.set(location, new Blob(pieces));
  }

  find(location) {
    const file = this.#files.get(location);
    return file ? file.size ?? file.length : -1;
  }

  #holds(piece, location, offset, count) {
    return piece.location === location && offset >= piece.offset && offset + count <= piece.offset + piece.bytes.length;
  }

  #pieceOf(location, offset, count) {
    if (this.#last && this.#holds(this.#last, location, offset, count)) return this.#last;
    for (const piece of this.#pieces.values()) {
      if (this.#holds(piece, location, offset, count)) return (this.#last = piece);
    }
    return null;
  }

  isReady(location, offset, count) {
    if (!(this.#files.get(location) instanceof Blob) || count === 0) return true;
    const piece = this.#pieceOf(location, offset, count);
    if (piece) piece.isWanted = true;
    else this.#wanted.set(`${offset} ${count} ${location}`, { location, offset, count });
    return Boolean(piece);
  }

  read(location, offset, count) {
    const file = this.#files.get(location);
    if (!(file instanceof Blob)) return file.subarray(offset, offset + count);
    const piece = this.#pieceOf(location, offset, count);
    return piece ? piece.bytes.subarray(offset - piece.offset, offset - piece.offset + count) : new Uint8Array(0);
  }

  // Reads what was asked for, as much of it as fits; what was not asked for any more goes.
  async fetch() {
    for (const [key, piece] of this.#pieces) {
      if (!piece.isWanted) this.#pieces.delete(key);
      piece.isWanted = false;
    }
    this.#last = null;
    const wanted = [];
    let ahead = 0;
    for (const [key, range] of this.#wanted) {
      if (ahead > 0 && ahead + range.count > aheadBytes) break;
      ahead += range.count;
      wanted.push([key, range]);
    }
    this.#wanted.clear();
    await Promise.all(wanted.map(async ([key, { location, offset, count }]) => {
      let bytes;
      try {
        bytes = new Uint8Array(await this.#files.get(location).slice(offset, offset + count).arrayBuffer());
      } catch (error) {
        throw new OneModelError("OM_E_IO", `'${location}' could not be read: ${error.message}`);
      }
      this.#pieces.set(key, { location, offset, bytes, isWanted: true });
    }));
  }

  // The library has what it wanted.
  rest() {
    this.#pieces.clear();
    this.#wanted.clear();
    this.#last = null;
  }
}

let readerCount = 0;

const sizeOf = ({ bytes, blob, announced }) => bytes?.length ?? blob?.size ?? announced;

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
    const announced = sizeOf(opened);
    const parts = [];
    let at = announced > 0 ? this.alloc(announced) : 0, size = 0;
    for await (const chunk of chunksOf(opened)) {
      if (announced > 0) this.module.HEAPU8.set(chunk, at + size);
      else parts.push(chunk);
      size += chunk.length;
      count(chunk.length);
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
  #reader = new Reader(); // of its external data
  #readerNumber = 0; // by which the library knows it
  #error;
  #prepared = 0; // a device that no session has yet
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
      await one.#makeSession(preparing, options);
      return one;
    } catch (error) {
      one.#prepared ||= await preparing.catch(() => 0); // it may still be under way
      one.#free();
      throw error;
    } finally {
      one.#dropPrepared();
    }
  }

  #dropPrepared() {
    this.#module._om_web_prepared_destroy(this.#prepared);
    this.#prepared = 0;
  }

  // What `work` gives, which is called again, after `again`, as long as it lacks bytes of external data. 0: it failed.
  async #withData(work, again = () => {}) {
    for (;;) {
      const result = work();
      if (result) {
        this.#reader.rest();
        return result;
      }
      if (this.#code() !== "OM_E_NOT_READY") this.#fail();
      await this.#reader.fetch();
      await again();
    }
  }

  async #readModel(names, opened, progress) {
    const m = this.#module;
    const totals = opened.map(sizeOf);
    const totalBytes = totals.every((total) => total > 0) ? totals.reduce((a, b) => a + b, 0) : 0;
    let loadedBytes = 0;
    const count = (bytes) => {
      loadedBytes += bytes;
      progress?.({ loadedBytes, totalBytes });
    };
    const [file, ...beside] = opened;
    const model = await this.#memory.receive(file, count);
    for (const [i, data] of beside.entries()) await this.#reader.receive(names[i], data, count);
    this.#readerNumber = ++readerCount;
    m.onemodelReaders.set(this.#readerNumber, this.#reader);
    this.#model = await this.#withData(() => m._om_web_model_load(model.at, model.size, this.#readerNumber, this.#error));
    this.inputs = this.#describe(false);
    this.outputs = this.#describe(true);
  }

  async #makeSession(preparing, options) {
    const m = this.#module, isExact = options.mode === "exact";
    this.#prepared = await preparing;
    this.#session = await this.#withData(
      () => m._om_web_session_create(this.#model, this.#prepared, Boolean(options.requireGpu), isExact, this.#error),
      async () => {
        // Where a body's weights were lacking, the session had the device by then, and it went with it.
        if (!this.#prepared || m._om_web_prepare_poll(this.#prepared, this.#error) >= 0) return;
        this.#dropPrepared();
        this.#prepared = await this.#prepareDevice(options);
      });
    const isFixed = this.inputs.every(({ dims }) => dims?.every((dim) => dim >= 0));
    if (isFixed) await this.#withData(() => m._om_web_session_prepare(this.#session, this.#error));
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

  #code() {
    return this.#text(this.#module._om_web_error_code(this.#error));
  }

  #fail() {
    throw new OneModelError(this.#code(), this.#text(this.#module._om_web_error_message(this.#error)));
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
        for (;;) {
          if (!m._om_web_run_begin(run, this.#error)) this.#fail();
          while (!m._om_web_run_is_done(run)) await nextTurn();
          if (m._om_web_run_finish(run, this.#error)) break;
          if (this.#code() !== "OM_E_NOT_READY") this.#fail();
          await this.#reader.fetch();
        }
        this.#reader.rest();
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
    return this.#inTurn(async () => {
      const m = this.#module;
      const scratch = new Scratch(m);
      let run = 0;
      try {
        run = this.#prepare(scratch, inputs, []);
        const found = await this.#withData(() => m._om_web_diagnose(run, this.#error));
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
    info.memoryBytes = m.HEAPU8.byteLength;
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
    m.onemodelReaders.delete(this.#readerNumber);
    this.#reader = null;
  }
}
