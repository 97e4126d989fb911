#!/usr/bin/env python3
"""Writes frames of a recording and ONNX Runtime's results for the models of sound.

    write_sound.py VOICE_FOLDER WAKE_FOLDER OUT_FOLDER

For each model NAME.x has the frames, NAME.y the first output of each. Voice activity goes through Debian's
pocketsphinx-testdata at 16 kHz, 512 samples a frame (v5 and v6 with the last 64 samples of the frame before in
front), and its state from frame to frame; wake words get seeded features. A file is a rank, the extents (int64)
and float32 elements. Exit code 77: there is no onnxruntime or no recording here.
"""
import pathlib
import sys

try:
    import numpy
    import onnxruntime
except ImportError as error:
    print(error)
    sys.exit(77)

RECORDING = pathlib.Path("/usr/share/pocketsphinx/test/data/goforward.raw")
FRAME, CONTEXT, RATE = 512, 64, 16000


def open_session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    # The rewrites of ONNX Runtime round otherwise; the text's operators are wanted, one by one.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def write(path, array):
    with open(path, "wb") as file:
        numpy.array([array.ndim, *array.shape], numpy.int64).tofile(file)
        numpy.ascontiguousarray(array, numpy.float32).tofile(file)


def frames_of(context):
    sound = numpy.fromfile(RECORDING, "<i2").astype(numpy.float32) / 32768
    sound = numpy.concatenate([numpy.zeros(context, numpy.float32), sound])
    count = (len(sound) - context) // FRAME
    return numpy.stack([sound[i * FRAME:i * FRAME + FRAME + context] for i in range(count)])


def voice(path, context, states):
    session = open_session(path)
    frames = frames_of(context)
    feed = {name: numpy.zeros(shape, numpy.float32) for name, shape, _ in states}
    feed["sr"] = numpy.array(RATE, numpy.int64)
    results = []
    for frame in frames:
        feed["input"] = frame[None]
        outputs = session.run(["output"] + [out for _, _, out in states], feed)
        results.append(outputs[0].reshape(-1))
        for (name, _, _), value in zip(states, outputs[1:]):
            feed[name] = value
    return frames, numpy.stack(results)


def wake(path):
    session = open_session(path)
    node = session.get_inputs()[0]
    frames = numpy.random.default_rng(5).standard_normal([8, *node.shape[1:]]).astype(numpy.float32)
    results = [session.run(None, {node.name: frame[None]})[0].reshape(-1) for frame in frames]
    return frames, numpy.stack(results)


def main():
    voices, wakes, out = (pathlib.Path(path) for path in sys.argv[1:4])
    if not RECORDING.exists():
        print(f"{RECORDING} is not there (Debian: pocketsphinx-testdata)")
        return 77
    out.mkdir(parents=True, exist_ok=True)
    newer = [("state", (2, 1, 128), "stateN")]
    older = [("h", (2, 1, 64), "hn"), ("c", (2, 1, 64), "cn")]
    for name, context, states in (("silero_vad_v5", CONTEXT, newer), ("silero_vad_v6", CONTEXT, newer),
                                  ("silero_vad_legacy", 0, older)):
        x, y = voice(voices / f"{name}.onnx", context, states)
        write(out / f"{name}.x", x)
        write(out / f"{name}.y", y)
    for path in sorted(wakes.glob("*.onnx")):
        x, y = wake(path)
        write(out / f"{path.stem}.x", x)
        write(out / f"{path.stem}.y", y)
    return 0


if __name__ == "__main__":
    sys.exit(main())
