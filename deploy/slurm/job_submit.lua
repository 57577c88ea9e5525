-- Slurm's JobSubmitPlugins=lua: writes into a job's comment what the prolog is to know of the job, and
-- names the partition with the least I/O conflict. It only informs: a job moves only if its comment has
-- "penstock=auto". An error, such as a file that is missing, old or of another program, never refuses a
-- job.

local CONFLICTS = "/run/penstock-slurm/conflicts" -- written by 'penstock slurm watch'
local OLDEST = 120 -- seconds
local LINES = 1000
local LONGEST_COMMENT = 1024 -- Slurm refuses a job with a longer one

-- Return the I/O load of each partition by name; nil if the file is old.
local function conflicts()
   local file = io.open(CONFLICTS, "r")
   if file == nil then return nil end
   local written = tonumber((file:read("*l") or ""):match("^# (%d+)"))
   local scores = {}
   for _ = 1, LINES do
      local line = file:read("*l")
      if line == nil then break end
      local name, score = line:match("^(%S+) (%d+)")
      if name ~= nil then scores[name] = tonumber(score) end
   end
   file:close()
   if written == nil or math.abs(os.time() - written) > OLDEST then return nil end
   return scores
end

local function requested(job, partitions)
   if job.partition ~= nil and job.partition ~= "" then return job.partition end
   for name, partition in pairs(partitions) do
      if partition.flag_default == 1 then return name end
   end
   return nil
end

local function least(scores, partitions, current)
   local best = current
   for name in pairs(partitions) do
      local score = scores[name]
      if score ~= nil and (score < scores[best] or (score == scores[best] and name == current)) then
         best = name
      end
   end
   return best
end

-- Return a variable of a batch job's environment, nil if it has none.
local function variable(job, name)
   if job.script == nil or job.script == "" then return nil end
   local value = job.environment[name]
   return value ~= "" and value or nil
end

-- Slurm passes neither a job's name nor its environment to prologs; ours reads them from the comment.
-- A comment of the user's own that does not name penstock stays as it is.
local function describe(job)
   local comment, parts = job.comment or "", {}
   local application, hints = variable(job, "PENSTOCK_APPLICATION"), variable(job, "PENSTOCK_HINT")
   if application ~= nil then parts[1] = "application=" .. application:gsub("[%s,]", "_") end
   if hints ~= nil then parts[#parts + 1] = hints:gsub("%s", "") end
   if job.name ~= nil and job.name ~= "" then
      if comment == "" or #parts > 0 or comment:find("penstock", 1, true) then
         parts[#parts + 1] = "job=" .. job.name:gsub("[%s,]", "_")
      end
   end
   if #parts == 0 then return end
   comment = (comment == "" and "" or comment .. " ") .. "penstock: " .. table.concat(parts, ",")
   if #comment <= LONGEST_COMMENT then job.comment = comment end
end

local function hint(job, partitions)
   local comment = job.comment or ""
   local scores, current = conflicts(), requested(job, partitions)
   if scores == nil or current == nil or scores[current] == nil then return end
   local best = least(scores, partitions, current)
   if best == current then return end
   if comment:find("penstock=auto", 1, true) then
      job.partition = best
      slurm.log_user("penstock: moved to partition %s, which has the least I/O now", best)
   else
      slurm.log_user("penstock: partition %s has the least I/O now (%.0f MiB/s, %s has %.0f)",
         best, scores[best] / 2^20, current, scores[current] / 2^20)
   end
end

function slurm_job_submit(job, partitions, _)
   for _, step in ipairs({ describe, hint }) do
      local done, why = pcall(step, job, partitions)
      if not done then slurm.log_info("penstock: %s", tostring(why)) end
   end
   return slurm.SUCCESS
end

function slurm_job_modify()
   return slurm.SUCCESS
end

return slurm.SUCCESS
