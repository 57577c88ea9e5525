-- Slurm's JobSubmitPlugins=lua: names the partition with the least I/O conflict.
-- It only informs: a job moves only if its comment has "penstock=auto". An error, such as a file that
-- is missing, old or of another program, never refuses a job.

local CONFLICTS = "/run/penstock-slurm/conflicts" -- written by 'penstock slurm watch'
local OLDEST = 120 -- seconds
local LINES = 1000

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

local function hint(job, partitions)
   local comment = job.comment or ""
   if comment == "" and job.name ~= nil and job.name ~= "" then
      -- Slurm does not pass a job's name to prologs; ours reads it from the comment.
      job.comment = "penstock: job=" .. job.name:gsub("%s", "_"):sub(1, 200)
   end
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
   local done, why = pcall(hint, job, partitions)
   if not done then slurm.log_info("penstock: no hint: %s", tostring(why)) end
   return slurm.SUCCESS
end

function slurm_job_modify()
   return slurm.SUCCESS
end

return slurm.SUCCESS
