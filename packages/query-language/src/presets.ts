/** Named queries. Values are query texts and may name other presets. */
export type Presets = Readonly<Record<string, string>>;

/** The presets that every installation has; users' saved filters are added to them and may not replace them. */
export const BUILT_IN_PRESETS: Presets = {
  errors: "status:>=400 OR state:failed",
  slow: "dur:>1s",
  changes: "method:(POST|PUT|PATCH|DELETE)",
  api: "type:(json|xml|grpc|graphql|protobuf) -type:(image|font|svg)",
  assets: "type:(script|stylesheet|image|font|media|css|javascript|audio|video)",
  pages: "type:(document|html)",
  streams: "type:(websocket|event-stream|grpc)",
  tunnels: "passthrough:true",
  redirects: "status:3xx",
};
