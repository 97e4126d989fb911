/** Runs ONNX models in a browser, on WebGPU and on the CPU. */

export type DType =
  | "float32" | "float64" | "float16" | "int8" | "int16" | "int32" | "int64"
  | "uint8" | "uint16" | "uint32" | "uint64" | "bool";

export type TensorData =
  | Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | BigInt64Array
  | Uint8Array | Uint16Array | Uint32Array | BigUint64Array;

export interface Tensor {
  /** Of `data`'s array type if left out. float16 and bool have none of their own: Uint16Array, Uint8Array. */
  dtype?: DType;
  /** Outermost dimension first; empty for a scalar. */
  dims: number[];
  data: TensorData;
}

export interface ValueInfo {
  name: string;
  dtype: DType;
  /** null: the model does not say. -1: known only at run time. */
  dims: number[] | null;
}

export interface Progress {
  loadedBytes: number;
  /** 0: not known. */
  totalBytes: number;
}

/** An address, the bytes themselves, a file, or a response whose body is read as it comes. */
export type Source = string | URL | Uint8Array | ArrayBuffer | Blob | Response;

export interface LoadOptions {
  /** "auto" (the default): WebGPU where there is a device, else the CPU. */
  device?: "auto" | "gpu" | "cpu";
  mode?: "fast" | "exact";
  /** An operator that cannot run on the device is an error. */
  requireGpu?: boolean;
  /** While the model and its external data are loaded: of all of it. */
  progress?: (progress: Progress) => void;
  /**
   * The files that the model's external data name, by those names. They stay outside of the library's memory, which
   * reads them in pieces: bytes where they are (they must stay as they are until dispose), a Blob or a File on its disk;
   * what is downloaded becomes a Blob.
   */
  externalData?: Record<string, Source>;
  /** Takes the device's time of each step (stepTimes); runs take longer then. */
  profile?: boolean;
  /** Instead of navigator.gpu: Dawn's in Node. */
  gpu?: GPU;
}

export interface NodePlacement {
  name: string;
  operator: string;
  place: "cpu" | "device" | "folded";
  /** null unless on the device. */
  region: number | null;
  reason: string;
}

export interface StepTime {
  name: string;
  operator: string;
  dispatches: number;
  /** With what was fused into the step. */
  ms: number;
}

export interface Diagnostics {
  nodes: NodePlacement[];
  regions: number;
}

export interface Info {
  /** null: the CPU alone. */
  device: string | null;
  /** Why there is no device, where "auto" found none. */
  fallbackReason: string | null;
  /** Of the CPU's operators: 1 unless the page is cross-origin isolated. */
  threads: number;
  arenaBytes: number;
  weightBytes: number;
  /** Made so far on the device: does not grow from the second run of a shape on. */
  allocations: number;
  dispatches: number;
  kernels: number;
  runs: number;
  hostAllocations: number;
  hostBytes: number;
  /** Of WebAssembly, for all models of the page; it never shrinks. */
  memoryBytes: number;
}

/** What every promise of this package is rejected with. */
export class OneModelError extends Error {
  /** The name of the library's status, such as "OM_E_INVALID_INPUT". */
  code: string;
}

export class OneModel {
  /** Loads a model, and makes a device and a session for it. */
  static load(source: Source, options?: LoadOptions): Promise<OneModel>;
  readonly inputs: ValueInfo[];
  readonly outputs: ValueInfo[];
  /** Runs of one model take turns. The results are the caller's. `outputs`: which; all if left out. */
  run(inputs: Record<string, Tensor>, outputs?: string[]): Promise<Record<string, Required<Tensor>>>;
  /** Where each operator runs, and why, for inputs of these shapes (their data may be left out). */
  diagnose(inputs: Record<string, Omit<Tensor, "data"> & { data?: TensorData }>): Promise<Diagnostics>;
  /** Device time of the last run's steps, in order; none without `profile`, or where the device has no clock. */
  stepTimes(): Promise<StepTime[]>;
  info(): Info;
  /** Frees the model, the session and its device. */
  dispose(): Promise<void>;
}
