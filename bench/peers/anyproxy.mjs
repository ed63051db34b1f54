/**
 * anyproxy with HTTPS interception, without its web interface. Its recorder, which cannot be disabled, writes each
 * exchange to an in-memory nedb and each response's body to a file.
 *
 * Usage: HOME=<directory> NODE_EXTRA_CA_CERTS=<origin CA file> node anyproxy.mjs <port>; prints {"port", "ca"}. It
 * keeps its CA and its files below HOME.
 */
import AnyProxy from "anyproxy";

const [port] = process.argv.slice(2);
const { certMgr } = AnyProxy.utils;
if (!certMgr.ifRootCAFileExists()) {
  await new Promise((resolve, reject) => {
    certMgr.generateRootCA((error) => (error ? reject(error) : resolve()));
  });
}
const proxy = new AnyProxy.ProxyServer({ port: Number(port), forceProxyHttps: true, silent: true });
proxy.on("ready", () => console.log(JSON.stringify({ port: Number(port), ca: certMgr.getRootCAFilePath() })));
proxy.on("error", (error) => {
  throw error;
});
proxy.start();
