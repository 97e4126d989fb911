// Runs the operators' tests, which are one program of WebAssembly, in a page or in Node. `createModule` is the
// program's loader, `gpu` the page's WebGPU; `line` gets what it prints.

const run = (createModule, gpu, words, line) => new Promise((resolve, reject) => {
  createModule({ arguments: words, gpu, print: line, printErr: line, done: resolve }).catch(reject);
});

// What an adapter does that no kernel of ours is to blame for: a case, and why.
const excuses = {
  "Log/wide on webgpu": "SwiftShader's log of a negative number is a number, which WGSL leaves open",
};

/** report(name, problem) for each program; options are the programs' own. */
export async function runOpTests(createModule, gpu, options, report) {
  const names = [];
  await run(createModule, gpu, [], (line) => names.push(line));
  for (const name of names) {
    const begin = performance.now();
    const problems = [], excused = [];
    let passed = 0, failed = null;
    const code = await run(createModule, gpu, [name, ...options], (line) => {
      if (line.startsWith("ok ")) ++passed;
      if (line.startsWith("not ok ")) failed = line.replace(/^not ok \d+ - /, "");
      if (line.startsWith("#   ") && failed) {
        if (excuses[failed]) excused.push(`, without ${failed} (${excuses[failed]})`);
        else problems.push(`${failed}: ${line.slice(4)}`);
        failed = null;
      }
    });
    const isOver = code === 0 || code === 77 || (code === 1 && excused.length > 0);
    const problem = problems.join("; ") || (isOver ? null : `it ended with ${code}`);
    await report(`${name}, ${passed} cases${excused.join("")}`, problem, (performance.now() - begin) / 1e3);
  }
}
