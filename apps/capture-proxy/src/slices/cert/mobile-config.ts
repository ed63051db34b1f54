import { createHash } from "node:crypto";
import type { CertificateAuthority } from "@headworks/tls-authority";

/**
 * An Apple configuration profile with the CA certificate as a trusted root. Its identifiers derive from the
 * certificate, so that installing it again replaces the earlier profile.
 */
export function mobileConfig(authority: CertificateAuthority): string {
  const name = escapeXml(authority.subject);
  const content = authority.certificateDer.toString("base64").replace(/(.{1,68})/g, "\t\t\t$1\n");
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>PayloadContent</key>
	<array>
		<dict>
			<key>PayloadCertificateFileName</key>
			<string>weir-ca.cer</string>
			<key>PayloadContent</key>
			<data>
${content}			</data>
			<key>PayloadDisplayName</key>
			<string>${name}</string>
			<key>PayloadIdentifier</key>
			<string>weir.ca.certificate</string>
			<key>PayloadType</key>
			<string>com.apple.security.root</string>
			<key>PayloadUUID</key>
			<string>${uuidOf("certificate", authority)}</string>
			<key>PayloadVersion</key>
			<integer>1</integer>
		</dict>
	</array>
	<key>PayloadDescription</key>
	<string>Lets this device trust the certificates that Weir makes, so that its HTTPS traffic can be inspected</string>
	<key>PayloadDisplayName</key>
	<string>Weir CA</string>
	<key>PayloadIdentifier</key>
	<string>weir.ca</string>
	<key>PayloadRemovalDisallowed</key>
	<false/>
	<key>PayloadType</key>
	<string>Configuration</string>
	<key>PayloadUUID</key>
	<string>${uuidOf("profile", authority)}</string>
	<key>PayloadVersion</key>
	<integer>1</integer>
</dict>
</plist>
`;
}

/** A UUID of version 8 (RFC 9562 section 5.8) over purpose and certificate. */
function uuidOf(purpose: string, authority: CertificateAuthority): string {
  const bytes = createHash("sha256").update(`weir ${purpose} ${authority.fingerprintSha256}`).digest();
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString("hex").toUpperCase();
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-");
}

function escapeXml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
