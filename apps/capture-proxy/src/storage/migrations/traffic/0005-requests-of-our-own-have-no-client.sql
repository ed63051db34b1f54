-- Earlier versions gave requests of Weir's own an address that is none, and a connection below zero. An entry that came by a
-- HAR has the address only.
UPDATE entry SET client_addr = NULL, connection_id = NULL WHERE connection_id < 0 OR client_addr GLOB 'replay:[0-9]*';
UPDATE stream SET client_addr = NULL WHERE client_addr GLOB 'replay:[0-9]*';
