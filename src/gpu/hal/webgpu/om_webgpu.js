// WebGPU as om_webgpu_js.h has it: a js-library for emscripten, the page's side of the backend.
//
// A page makes a device ready before a session can open it, since that takes time it must not wait
// for: `await Module.onemodelPrepareDevice(options)`. Everything else is called from C and returns
// at once; what the device has yet to do is known by the number of the last finished submission.
//
// A submission waits, in a chain of promises, for the kernels it uses and for the one before it.
addToLibrary({
  $omGpu__deps: ["$UTF8ToString", "$stringToUTF8"],
  $omGpu__postset: "Module['onemodelPrepareDevice'] = omGpu.prepare;",
  $omGpu: {
    ready: [],   // devices that no session has opened: {device, name, isSoftware}
    opened: [],  // by handle - 1: see open(); null once closed

    // In the order of om_webgpu_js.h.
    limitNames: [
      "maxStorageBufferBindingSize", "maxBufferSize", "minStorageBufferOffsetAlignment",
      "maxComputeWorkgroupStorageSize", "maxComputeInvocationsPerWorkgroup",
      "maxComputeWorkgroupsPerDimension",
    ],

    prepare: async function (options) {
      const gpu = options.gpu ?? globalThis.navigator?.gpu;
      if (!gpu) throw new Error("This browser has no WebGPU.");
      const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
      if (!adapter) throw new Error("WebGPU found no adapter.");
      const requiredLimits = {};
      for (const name of omGpu.limitNames) requiredLimits[name] = adapter.limits[name];
      const requiredFeatures = ["shader-f16", "timestamp-query"].filter((feature) => adapter.features.has(feature));
      const device = await adapter.requestDevice({ requiredLimits, requiredFeatures });
      const info = adapter.info ?? {};
      const words = [info.vendor, info.architecture, info.device, info.description];
      const isSoftware = Boolean(info.isFallbackAdapter ?? adapter.isFallbackAdapter);
      omGpu.ready.push({ device, isSoftware, name: words.filter(Boolean).join(" ") || "WebGPU adapter" });
    },

    add: function (list, object) {
      const free = list.indexOf(null);
      const at = free < 0 ? list.length : free;
      list[at] = object;
      return at + 1;
    },

    remember: function (state, kind, reason) {
      if (!state.error) state.error = { kind, reason };
    },

    open: function (entry) {
      const state = {
        device: entry.device, isSoftware: entry.isSoftware, buffers: [], kernels: [], recordings: [],
        chain: Promise.resolve(), finished: 0, error: null,
      };
      const { remember } = omGpu;
      entry.device.lost.then((lost) => remember(state, 1, lost.message || lost.reason));
      entry.device.addEventListener("uncapturederror", (event) => {
        const isMemory = /out of memory/i.test(event.error.constructor.name + event.error.message);
        remember(state, isMemory ? 2 : 3, event.error.message);
      });
      return omGpu.add(omGpu.opened, state);
    },

    // The bind group of a dispatch: the kernel's buffers, and its parameters at binding 8.
    bindGroup: function (state, kernel, words, at, params, paramsOffset) {
      const entries = [];
      for (let i = 0; i < kernel.bindingCount; ++i) {
        const resource = {
          buffer: state.buffers[words[at + 3 * i] - 1].buffer,
          offset: words[at + 3 * i + 1] * 4,
          size: words[at + 3 * i + 2] * 4,
        };
        entries.push({ binding: i, resource });
      }
      if (kernel.paramsBytes > 0) {
        const resource = { buffer: params, offset: paramsOffset, size: kernel.paramsBytes };
        entries.push({ binding: 8, resource });
      }
      return state.device.createBindGroup({ layout: kernel.layout, entries });
    },

    // The recorded words as a list of what to encode.
    read: function (state, words, params) {
      const operations = [];
      for (let at = 0; at < words.length;) {
        if (words[at] === 1) {
          const kernel = state.kernels[words[at + 1] - 1];
          const groups = [words[at + 2], words[at + 3], words[at + 4]];
          const group = omGpu.bindGroup(state, kernel, words, at + 6, params, words[at + 5]);
          operations.push({ kernel, group, groups });
          at += 6 + 3 * kernel.bindingCount;
        } else if (words[at] === 3) {
          operations.push({ slot: words[at + 1] });
          at += 2;
        } else {
          const [source, target] = [state.buffers[words[at + 1] - 1], state.buffers[words[at + 3] - 1]];
          operations.push({
            copy: [source.buffer, words[at + 2] * 4, target.buffer, words[at + 4] * 4, words[at + 5] * 4],
            target,
          });
          at += 6;
        }
      }
      return operations;
    },

    // Room for a recording's timestamps: in the device's queries, then where they can be read.
    makeClock: function ({ device }, count) {
      const { QUERY_RESOLVE, COPY_SRC, COPY_DST, MAP_READ } = GPUBufferUsage;
      const size = 8 * count;
      return {
        count, set: device.createQuerySet({ type: "timestamp", count }),
        resolved: device.createBuffer({ size, usage: QUERY_RESOLVE | COPY_SRC }),
        // What a submission maps when it is done, as a buffer for reading is.
        target: { buffer: device.createBuffer({ size, usage: MAP_READ | COPY_DST }), isMapped: false, range: null },
      };
    },

    encode: function (encoder, { operations, clock }) {
      let pass = null;
      for (const { kernel, group, groups, copy, slot } of operations) {
        if (copy || slot !== undefined) {
          pass?.end();
          pass = null;
        }
        if (copy) {
          encoder.copyBufferToBuffer(...copy);
          continue;
        }
        if (slot !== undefined) { // time is told where a pass begins: one of its own
          encoder.beginComputePass({ timestampWrites: { querySet: clock.set, beginningOfPassWriteIndex: slot } }).end();
          continue;
        }
        pass ??= encoder.beginComputePass();
        pass.setPipeline(kernel.pipeline);
        pass.setBindGroup(0, group);
        pass.dispatchWorkgroups(...groups);
      }
      pass?.end();
      if (!clock) return;
      encoder.resolveQuerySet(clock.set, 0, clock.count, clock.resolved, 0);
      encoder.copyBufferToBuffer(clock.resolved, 0, clock.target.buffer, 0, 8 * clock.count);
    },

    submit: async function (state, recordings, number) {
      const operations = recordings.flatMap((recording) => recording.operations);
      await Promise.all(operations.map(({ kernel }) => kernel?.made));
      if (state.error) return;
      const clocks = recordings.filter(({ clock }) => clock).map(({ clock }) => clock.target);
      const mapped = new Set([...operations.map((o) => o.target).filter((t) => t?.isMapped !== undefined), ...clocks]);
      for (const target of mapped) {
        if (target.isMapped) target.buffer.unmap();
        target.isMapped = false;
        target.range = null;
      }
      const encoder = state.device.createCommandEncoder();
      for (const recording of recordings) omGpu.encode(encoder, recording);
      state.device.queue.submit([encoder.finish()]);
      await Promise.all([state.device.queue.onSubmittedWorkDone(),
                         ...Array.from(mapped, (t) => t.buffer.mapAsync(GPUMapMode.READ))]);
      for (const target of mapped) target.isMapped = true;
      state.finished = number;
    },
  },

  om_webgpu_js_device_count__deps: ["$omGpu"],
  om_webgpu_js_device_count: () => omGpu.ready.length,

  om_webgpu_js_device_name__deps: ["$omGpu"],
  om_webgpu_js_device_name: (index, name, capacity) => {
    stringToUTF8(omGpu.ready[index].name, name, capacity);
  },

  om_webgpu_js_open__deps: ["$omGpu"],
  om_webgpu_js_open: (index) => omGpu.open(omGpu.ready.splice(index, 1)[0]),

  om_webgpu_js_close__deps: ["$omGpu"],
  om_webgpu_js_close: (handle) => {
    omGpu.opened[handle - 1].device.destroy();
    omGpu.opened[handle - 1] = null;
  },

  om_webgpu_js_limit__deps: ["$omGpu"],
  om_webgpu_js_limit: (handle, which) => {
    return omGpu.opened[handle - 1].device.limits[omGpu.limitNames[which]];
  },

  om_webgpu_js_has_float16__deps: ["$omGpu"],
  om_webgpu_js_has_float16: (handle) => Number(omGpu.opened[handle - 1].device.features.has("shader-f16")),

  om_webgpu_js_has_clock__deps: ["$omGpu"],
  om_webgpu_js_has_clock: (handle) => Number(omGpu.opened[handle - 1].device.features.has("timestamp-query")),

  om_webgpu_js_is_software__deps: ["$omGpu"],
  om_webgpu_js_is_software: (handle) => Number(omGpu.opened[handle - 1].isSoftware),

  om_webgpu_js_error__deps: ["$omGpu"],
  om_webgpu_js_error: (handle, reason, capacity) => {
    const { error } = omGpu.opened[handle - 1];
    if (!error) return 0;
    stringToUTF8(error.reason, reason, capacity);
    return error.kind;
  },

  om_webgpu_js_buffer_create__deps: ["$omGpu"],
  om_webgpu_js_buffer_create: (handle, kind, bytes) => {
    const state = omGpu.opened[handle - 1];
    const { STORAGE, COPY_SRC, COPY_DST, MAP_READ } = GPUBufferUsage;
    const usage = [STORAGE | COPY_SRC | COPY_DST, COPY_SRC | COPY_DST, MAP_READ | COPY_DST][kind];
    try {
      const buffer = state.device.createBuffer({ size: bytes, usage });
      return omGpu.add(state.buffers, { buffer, isMapped: kind === 2 ? false : undefined, range: null });
    } catch (error) {
      omGpu.remember(state, 2, error.message);
      return 0;
    }
  },

  om_webgpu_js_buffer_destroy__deps: ["$omGpu"],
  om_webgpu_js_buffer_destroy: (handle, buffer) => {
    const state = omGpu.opened[handle - 1];
    state.buffers[buffer - 1].buffer.destroy();
    state.buffers[buffer - 1] = null;
  },

  om_webgpu_js_write__deps: ["$omGpu"],
  om_webgpu_js_write: (handle, buffer, offset, data, bytes) => {
    const state = omGpu.opened[handle - 1];
    state.device.queue.writeBuffer(state.buffers[buffer - 1].buffer, offset, HEAPU8, data >>> 0, bytes >>> 0);
  },

  om_webgpu_js_read__deps: ["$omGpu"],
  om_webgpu_js_read: (handle, buffer, offset, data, bytes) => {
    const source = omGpu.opened[handle - 1].buffers[buffer - 1];
    if (!source.isMapped) return 0;
    source.range ??= source.buffer.getMappedRange();
    HEAPU8.set(new Uint8Array(source.range, offset, bytes >>> 0), data >>> 0);
    return 1;
  },

  om_webgpu_js_kernel_create__deps: ["$omGpu"],
  om_webgpu_js_kernel_create: (handle, name, text, textBytes, constants, constantCount, bindingCount,
                               writeMask, paramsBytes) => {
    const state = omGpu.opened[handle - 1];
    const { device } = state;
    const entries = [];
    for (let i = 0; i < bindingCount; ++i) {
      const type = (writeMask >> i) & 1 ? "storage" : "read-only-storage";
      entries.push({ binding: i, visibility: GPUShaderStage.COMPUTE, buffer: { type } });
    }
    if (paramsBytes > 0) {
      entries.push({ binding: 8, visibility: GPUShaderStage.COMPUTE, buffer: { type: "uniform" } });
    }
    const label = UTF8ToString(name);
    const code = UTF8ToString(text, textBytes);
    const values = {};
    for (let i = 0; i < constantCount; ++i) {
      // The translation may leave out what nothing reads.
      if (code.includes(`@id(${i})`)) values[i] = HEAPU32[(constants >>> 2) + i];
    }
    const layout = device.createBindGroupLayout({ entries });
    const kernel = { layout, bindingCount, paramsBytes, pipeline: null };
    kernel.made = device.createComputePipelineAsync({
      label,
      layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module: device.createShaderModule({ label, code }), constants: values },
    }).then((pipeline) => { kernel.pipeline = pipeline; },
            (error) => omGpu.remember(state, 3, `Kernel ${label}: ${error.message}`));
    return omGpu.add(state.kernels, kernel);
  },

  om_webgpu_js_kernel_destroy__deps: ["$omGpu"],
  om_webgpu_js_kernel_destroy: (handle, kernel) => { omGpu.opened[handle - 1].kernels[kernel - 1] = null; },

  om_webgpu_js_recording_create__deps: ["$omGpu"],
  om_webgpu_js_recording_create: (handle, words, wordCount, params, paramsBytes, timestampCount) => {
    const state = omGpu.opened[handle - 1];
    let buffer = null;
    if (paramsBytes > 0) {
      buffer = state.device.createBuffer({ size: paramsBytes, usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST });
      state.device.queue.writeBuffer(buffer, 0, HEAPU8, params >>> 0, paramsBytes);
    }
    const list = HEAPU32.subarray(words >>> 2, (words >>> 2) + wordCount);
    const clock = timestampCount > 0 ? omGpu.makeClock(state, timestampCount) : null;
    return omGpu.add(state.recordings, { operations: omGpu.read(state, list, buffer), params: buffer, clock });
  },

  om_webgpu_js_recording_destroy__deps: ["$omGpu"],
  om_webgpu_js_recording_destroy: (handle, recording) => {
    const state = omGpu.opened[handle - 1];
    const { params, clock } = state.recordings[recording - 1];
    params?.destroy();
    for (const object of clock ? [clock.set, clock.resolved, clock.target.buffer] : []) object.destroy();
    state.recordings[recording - 1] = null;
  },

  om_webgpu_js_timestamps__deps: ["$omGpu"],
  om_webgpu_js_timestamps: (handle, recording, count, times) => {
    const { clock } = omGpu.opened[handle - 1].recordings[recording - 1];
    if (!clock?.target.isMapped || count > clock.count) return 0;
    clock.target.range ??= clock.target.buffer.getMappedRange();
    HEAPU8.set(new Uint8Array(clock.target.range, 0, 8 * count), times >>> 0);
    return 1;
  },

  om_webgpu_js_submit__deps: ["$omGpu"],
  om_webgpu_js_submit: (handle, recordings, count, number) => {
    const state = omGpu.opened[handle - 1];
    const list = Array.from(HEAPU32.subarray(recordings >>> 2, (recordings >>> 2) + count),
                            (recording) => state.recordings[recording - 1]);
    state.chain = state.chain.then(() => omGpu.submit(state, list, number))
        .catch((error) => omGpu.remember(state, 3, error.message));
  },

  om_webgpu_js_finished__deps: ["$omGpu"],
  om_webgpu_js_finished: (handle) => omGpu.opened[handle - 1].finished,
});
