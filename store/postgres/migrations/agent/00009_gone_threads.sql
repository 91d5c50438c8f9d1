-- +goose Up
-- Who may replay the frames of a temporary run after its end: its thread's metadata, as long as there are frames.
CREATE TABLE gone_threads (
  run_id TEXT COLLATE "C" PRIMARY KEY, thread_id TEXT COLLATE "C" NOT NULL, metadata TEXT COLLATE "C" NOT NULL
);

-- Whether a document satisfies an access filter (agent-server reference 12); agent.Filter says the same in Go and has
-- refused every filter with words that are not known here.
-- +goose StatementBegin
CREATE FUNCTION slipway_allows(doc JSONB, filter JSONB) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  name TEXT;
  want JSONB;
  branch JSONB;
  good BOOLEAN;
BEGIN
  IF doc IS NULL OR filter IS NULL OR jsonb_typeof(doc) <> 'object' OR jsonb_typeof(filter) <> 'object' THEN
    RETURN FALSE;
  END IF;
  FOR name, want IN SELECT * FROM jsonb_each(filter) LOOP
    IF name = '$and' THEN
      FOR branch IN SELECT * FROM jsonb_array_elements(want) LOOP
        IF NOT slipway_allows(doc, branch) THEN
          RETURN FALSE;
        END IF;
      END LOOP;
    ELSIF name = '$or' THEN
      good := FALSE;
      FOR branch IN SELECT * FROM jsonb_array_elements(want) LOOP
        good := good OR slipway_allows(doc, branch);
      END LOOP;
      IF NOT good THEN
        RETURN FALSE;
      END IF;
    ELSIF NOT doc ? name OR NOT slipway_satisfies(doc -> name, want) THEN
      RETURN FALSE;
    END IF;
  END LOOP;
  RETURN TRUE;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION slipway_satisfies(got JSONB, want JSONB) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  wanted JSONB;
BEGIN
  IF jsonb_typeof(want) <> 'object' OR NOT want ?| ARRAY['$eq', '$contains'] THEN
    RETURN got = want;
  END IF;
  IF want ? '$eq' AND got <> want -> '$eq' THEN
    RETURN FALSE;
  END IF;
  IF NOT want ? '$contains' THEN
    RETURN TRUE;
  END IF;
  wanted := CASE jsonb_typeof(want -> '$contains') WHEN 'array' THEN want -> '$contains' ELSE jsonb_build_array(want -> '$contains') END;
  RETURN jsonb_typeof(got) = 'array' AND NOT EXISTS (
    SELECT 1 FROM jsonb_array_elements(wanted) AS w WHERE NOT EXISTS (SELECT 1 FROM jsonb_array_elements(got) AS g WHERE g = w));
END $$;
-- +goose StatementEnd

-- An item of the store as access filters see it.
-- +goose StatementBegin
CREATE FUNCTION slipway_item(value JSONB, namespace JSONB, key TEXT) RETURNS JSONB LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE jsonb_typeof(value) WHEN 'object' THEN value ELSE '{}'::jsonb END || jsonb_build_object('namespace', namespace, 'key', key)
$$;
-- +goose StatementEnd
