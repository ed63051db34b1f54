-- Earlier versions gave Weir's own requests an invalid address and a negative connection number. Entries imported from a
-- HAR have only the address.
UPDATE entry SET client_addr = NULL, connection_id = NULL WHERE connection_id < 0 OR client_addr GLOB 'replay:[0-9]*';
UPDATE stream SET client_addr = NULL WHERE client_addr GLOB 'replay:[0-9]*';
