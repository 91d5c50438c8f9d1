-- +goose Up
-- Every change of a deployment is told to the other control services, with the listener it concerns.
-- +goose StatementBegin
CREATE FUNCTION tell_deployment() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    PERFORM pg_notify('slipway_' || TG_TABLE_SCHEMA, OLD.id || ' ' || OLD.listener_id);
  END IF;
  IF TG_OP <> 'DELETE' THEN
    PERFORM pg_notify('slipway_' || TG_TABLE_SCHEMA, NEW.id || ' ' || NEW.listener_id);
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER deployments_told AFTER INSERT OR UPDATE OR DELETE ON deployments FOR EACH ROW EXECUTE FUNCTION tell_deployment();
