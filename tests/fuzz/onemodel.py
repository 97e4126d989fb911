"""libonemodel.so by its C interface, for programs that compare it with others.

A model runs on the CPU or, with a Device, on a GPU; results come as numpy arrays.
"""
import ctypes
import math

import numpy as np

DTYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
          10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64}
NUMBERS = {np.dtype(t): n for n, t in DTYPES.items()}
CPU, DEVICE, FOLDED = range(3) # om_place


class Tensor(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("rank", ctypes.c_uint32), ("dims", ctypes.c_int64 * 8),
                ("data", ctypes.c_void_p), ("data_bytes", ctypes.c_size_t)]


class Named(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("tensor", Tensor)]


class Args(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("inputs", ctypes.POINTER(Named)), ("input_count", ctypes.c_size_t),
                ("outputs", ctypes.POINTER(Named)), ("output_count", ctypes.c_size_t)]


class Options(ctypes.Structure): # the first fields of om_session_options, as an older program has them
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("mode", ctypes.c_int), ("threads", ctypes.c_uint32),
                ("provider", ctypes.c_void_p), ("provider_options", ctypes.c_void_p)]


class Device(ctypes.Structure): # om_gpu_options
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("device", ctypes.c_char_p), ("backend", ctypes.c_char_p),
                ("no_fusion", ctypes.c_bool), ("no_matrix_hardware", ctypes.c_bool), ("collect_timings", ctypes.c_bool),
                ("submission_flops", ctypes.c_uint64), ("profile_steps", ctypes.c_bool),
                ("cache_folder", ctypes.c_char_p), ("no_fused_attention", ctypes.c_bool),
                ("prepared", ctypes.c_void_p), ("max_binding_bytes", ctypes.c_uint64)]

    def __init__(self, **options):
        super().__init__(struct_bytes=ctypes.sizeof(Device), **options)


class DeviceInfo(ctypes.Structure): # the first fields of om_gpu_info, and room for more
    _fields_ = [("name", ctypes.c_char * 256), ("uuid", ctypes.c_char * 33), ("driver", ctypes.c_char * 256),
                ("backend", ctypes.c_char_p), ("kind", ctypes.c_char_p), ("memory_bytes", ctypes.c_uint64),
                ("keeps_subnormals", ctypes.c_bool), ("exact_failures", ctypes.c_char_p),
                ("counters", ctypes.c_uint64 * 7), ("cache_file", ctypes.c_char_p), ("cache_writes", ctypes.c_uint64),
                ("times", ctypes.c_double * 4), ("more", ctypes.c_uint64 * 64)]


class Node(ctypes.Structure): # om_node_diagnostics
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_char_p), ("domain", ctypes.c_char_p),
                ("place", ctypes.c_int), ("region", ctypes.c_int32), ("is_fused", ctypes.c_bool),
                ("reason", ctypes.c_char_p), ("output_names", ctypes.c_void_p), ("output_count", ctypes.c_size_t),
                ("outer", ctypes.c_size_t), ("body", ctypes.c_char_p)]


class Diagnostics(ctypes.Structure): # the first fields of om_diagnostics
    _fields_ = [("nodes", ctypes.POINTER(Node)), ("node_count", ctypes.c_size_t)]


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("line", ctypes.c_int), ("file", ctypes.c_char_p),
                ("message", ctypes.c_char * 1024)]


class Library:
    FAST, EXACT = 0, 1

    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.error = Error()

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.error.message.decode())

    def run(self, model_bytes, feed, names, mode, threads, device=None):
        with Session(self, model_bytes, mode, threads, device) as session:
            return session.run(feed, names)


class Session:
    def __init__(self, library, model_bytes, mode, threads, device=None):
        self.library, self.c, self.error = library, library.c, ctypes.byref(library.error)
        self.model, self.session = ctypes.c_void_p(), ctypes.c_void_p()
        self.bytes = model_bytes # stay as long as the model
        options = Options(ctypes.sizeof(Options), mode, threads)
        if device is not None:
            self.c.om_gpu_provider.restype = ctypes.c_void_p
            options.provider = self.c.om_gpu_provider()
            options.provider_options = ctypes.addressof(device)
        try:
            library.check(self.c.om_model_load_memory(model_bytes, ctypes.c_size_t(len(model_bytes)), None,
                                                      ctypes.byref(self.model), self.error))
            library.check(self.c.om_session_create(self.model, ctypes.byref(options), ctypes.byref(self.session),
                                                   self.error))
        except RuntimeError:
            self.close()
            raise

    def close(self):
        self.c.om_session_destroy(self.session)
        self.c.om_model_destroy(self.model)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def run(self, feed, names):
        inputs = inputs_of(feed)
        outputs = (Named * len(names))(*[Named(name.encode(), Tensor()) for name in names])
        args = Args(ctypes.sizeof(Args), inputs, len(feed), outputs, len(names))
        self.library.check(self.c.om_session_run(self.session, ctypes.byref(args), self.error))
        return [array_of(o.tensor) for o in outputs]

    def nodes(self, feed):
        """(type, place, reason) of each node, for these inputs."""
        found = ctypes.POINTER(Diagnostics)()
        self.library.check(self.c.om_session_diagnose(self.session, inputs_of(feed), ctypes.c_size_t(len(feed)),
                                                      ctypes.byref(found), self.error))
        nodes = found.contents.nodes[:found.contents.node_count]
        return [(n.type.decode(), n.place, n.reason.decode()) for n in nodes]

    def device(self):
        info = DeviceInfo()
        self.library.check(self.c.om_gpu_get_info(self.session, ctypes.byref(info), self.error))
        return info


def inputs_of(feed):
    return (Named * len(feed))(*[Named(name.encode(), tensor_of(a)) for name, a in feed.items()])


def tensor_of(array):
    tensor = Tensor(NUMBERS[array.dtype], array.ndim)
    tensor.dims[:array.ndim] = array.shape
    tensor.data, tensor.data_bytes = array.ctypes.data, array.nbytes
    return tensor


def array_of(tensor):
    dtype, shape = np.dtype(DTYPES[tensor.dtype]), tuple(tensor.dims[:tensor.rank])
    count = math.prod(shape)
    if count == 0:
        return np.zeros(shape, dtype)
    return np.frombuffer(ctypes.string_at(tensor.data, count * dtype.itemsize), dtype).reshape(shape).copy()
