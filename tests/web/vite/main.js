// A program that is bundled: it runs the angle classifier on whatever there is, and writes down what came out.
import { OneModel } from "onemodel-web";

const model = await OneModel.load("/models/ch_ppocr_mobile_v2.0_cls_infer.onnx");
const dims = [1, 3, 48, 192];
const results = await model.run({ x: { dims, data: new Float32Array(3 * 48 * 192) } });
const [{ data }] = Object.values(results);
document.getElementById("out").textContent = `${data.length} results, sum ${(data[0] + data[1]).toFixed(3)}`;
